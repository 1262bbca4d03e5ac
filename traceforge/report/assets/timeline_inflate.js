// Raw deflate (RFC 1951) undone at once: a page that is printed as soon as it is loaded waits for no stream. In: base64.
// Out: text, one letter a byte. The report wrote it: what is no deflate ends in an error, not in a wrong picture.

/** A Huffman code by the lengths of its words: how many words of each length, and what they stand for in order. */
const codeOf = (lengths) => {
  const counts = new Uint16Array(16);
  lengths.forEach((length) => (counts[length] += 1));
  counts[0] = 0;
  const places = new Uint16Array(16);
  for (let length = 1; length < 15; length += 1) places[length + 1] = places[length] + counts[length];
  const symbols = new Uint16Array(lengths.length);
  lengths.forEach((length, symbol) => {
    if (length) symbols[places[length]++] = symbol;
  });
  return { counts, symbols };
};

/** First value of each code of a length or a distance, where a code has `extra(code)` further bits. */
const basesOf = (first, size, extra) => {
  const bases = [first];
  for (let code = 0; code < size - 1; code += 1) bases.push(bases[code] + (1 << extra(code)));
  return bases;
};

const lengthBits = (code) => (code < 8 || code === 28 ? 0 : (code >> 2) - 1);
const distanceBits = (code) => (code < 4 ? 0 : (code >> 1) - 1);
const LENGTHS = basesOf(3, 29, lengthBits);
LENGTHS[28] = 258;
const DISTANCES = basesOf(1, 30, distanceBits);
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const FIXED = [
  codeOf(Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8))),
  codeOf(new Array(30).fill(5)),
];

class Inflater {
  constructor(bytes) {
    Object.assign(this, { bytes, place: 0, held: 0, count: 0, out: new Uint8Array(8 * bytes.length + 1024), size: 0 });
  }

  /** The next bits, the first the lowest. */
  bits(wanted) {
    while (this.count < wanted) {
      if (this.place >= this.bytes.length) throw new Error("the timeline's data are cut short");
      this.held |= this.bytes[this.place++] << this.count;
      this.count += 8;
    }
    const value = this.held & ((1 << wanted) - 1);
    this.held >>>= wanted;
    this.count -= wanted;
    return value;
  }

  symbol({ counts, symbols }) {
    let [code, first, place] = [0, 0, 0];
    for (let length = 1; length < 16; length += 1) {
      code |= this.bits(1);
      const own = counts[length];
      if (code - first < own) return symbols[place + code - first];
      place += own;
      first = (first + own) << 1;
      code <<= 1;
    }
    throw new Error("the timeline's data are damaged");
  }

  room(size) {
    if (this.size + size <= this.out.length) return;
    const larger = new Uint8Array(2 * this.out.length + size);
    larger.set(this.out.subarray(0, this.size));
    this.out = larger;
  }

  stored() {
    this.held = this.count = 0;
    const size = this.bits(16);
    this.bits(16);
    this.room(size);
    this.out.set(this.bytes.subarray(this.place, this.place + size), this.size);
    this.place += size;
    this.size += size;
  }

  /** The two codes that a block brings along. */
  codes() {
    const [letters, distances, own] = [this.bits(5) + 257, this.bits(5) + 1, this.bits(4) + 4];
    const lengths = new Array(19).fill(0);
    for (let at = 0; at < own; at += 1) lengths[ORDER[at]] = this.bits(3);
    const code = codeOf(lengths);
    const found = [];
    while (found.length < letters + distances) {
      const symbol = this.symbol(code);
      if (symbol < 16) found.push(symbol);
      else {
        const value = symbol === 16 ? found[found.length - 1] : 0;
        const times = symbol === 16 ? 3 + this.bits(2) : symbol === 17 ? 3 + this.bits(3) : 11 + this.bits(7);
        for (let again = 0; again < times; again += 1) found.push(value);
      }
    }
    return [codeOf(found.slice(0, letters)), codeOf(found.slice(letters))];
  }

  block([letters, distances]) {
    for (;;) {
      const symbol = this.symbol(letters);
      if (symbol === 256) return;
      this.room(258);
      if (symbol < 256) {
        this.out[this.size++] = symbol;
        continue;
      }
      const length = LENGTHS[symbol - 257] + this.bits(lengthBits(symbol - 257));
      const code = this.symbol(distances);
      const from = this.size - DISTANCES[code] - this.bits(distanceBits(code));
      for (let at = 0; at < length; at += 1) this.out[this.size++] = this.out[from + at];
    }
  }

  whole() {
    for (let isLast = 0; !isLast;) {
      isLast = this.bits(1);
      const kind = this.bits(2);
      if (kind === 0) this.stored();
      else this.block(kind === 1 ? FIXED : this.codes());
    }
    return new TextDecoder().decode(this.out.subarray(0, this.size));
  }
}

const inflated = (packed) => new Inflater(Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0))).whole();
