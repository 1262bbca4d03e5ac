-- What the user states of the hardware, beside what traces and logs say; none where nothing was stated.
CREATE TABLE meta.stated_rate (
  -- Element type of a device's peak (bf16, tf32, fp32, fp8), or memory; or path of a line rate: link or nic.
  name VARCHAR PRIMARY KEY,
  -- FLOP/s of an element type; bytes/s of memory; of a path the bytes/s that a rank can send in one direction.
  rate_per_s DOUBLE NOT NULL
);
