// Vectors as they come over the bus, as they are kept, and as they are compared.

/** From little-endian 32-bit floats in base64; what is left over at the end is dropped. */
export function vectorOf(values: string): Float32Array {
  const bytes = Buffer.from(values, "base64");
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < vector.length; index++) vector[index] = bytes.readFloatLE(index * 4);
  return vector;
}

/** As the database keeps it: the most significant byte first, as PostgreSQL itself writes floats. */
export function packed(vector: Float32Array): Buffer {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatBE(value, index * 4);
  return bytes;
}

export function unpacked(bytes: Buffer): Float32Array {
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < vector.length; index++) vector[index] = bytes.readFloatBE(index * 4);
  return vector;
}

/** The same direction with length 1; one without a direction stays as it is, at right angles to everything. */
export function pointing(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** As `parley.signs` has them of what is kept: a bit for each number, set where it is negative. */
export function signsOf(vector: Float32Array): string {
  return Array.from(vector, (value) => (value < 0 || Object.is(value, -0) ? "1" : "0")).join("");
}
