-- A duration as it is said: three digits and the unit that fits, as traceforge.units writes it; NULL where it is NULL.
CREATE OR REPLACE MACRO attribute.duration_text(
  -- Duration, ns.
  ns
) AS LIST_TRANSFORM(
  [ROUND(CAST(ns AS DOUBLE), 2 - CAST(FLOOR(LOG10(GREATEST(ns, 1))) AS INTEGER))],
  LAMBDA rounded_ns: REGEXP_REPLACE(
    CASE
      WHEN rounded_ns < 1e6 THEN FORMAT('{:#.3g} µs', rounded_ns / 1e3)
      WHEN rounded_ns < 1e9 THEN FORMAT('{:#.3g} ms', rounded_ns / 1e6)
      WHEN rounded_ns < 1e12 THEN FORMAT('{:#.3g} s', rounded_ns / 1e9)
      ELSE FORMAT('{:,.0f} s', rounded_ns / 1e9)
    END, '^(\d{3,})\.0 ', '\1 '
  )
)[1]
