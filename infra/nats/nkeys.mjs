// Creates NATS user keys (NKeys: Ed25519). The server stores only the public key; the seed belongs to the service. Without dependencies,
// because it runs before anything is installed.

import { generateKeyPairSync } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** Type bytes of the format: a seed, a user. */
const seedType = 18 << 3;
const userType = 20 << 3;

/** A new key: `seed` (SU…) is secret, `publicKey` (U…) is not. */
export function createUserKey() {
  const { d, x } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  return {
    seed: encode([seedType | (userType >> 5), (userType & 31) << 3], Buffer.from(d ?? "", "base64url")),
    publicKey: encode([userType], Buffer.from(x ?? "", "base64url")),
  };
}

/** Base32 of the type, the key and a checksum. */
function encode(type, key) {
  const body = Buffer.concat([Buffer.from(type), key]);
  const sum = Buffer.alloc(2);
  sum.writeUInt16LE(crc16(body));
  return base32(Buffer.concat([body, sum]));
}

/** CRC-16/XMODEM. */
function crc16(bytes) {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc;
}

function base32(bytes) {
  let bits = "";
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  return (bits.match(/.{1,5}/g) ?? []).map((group) => alphabet[Number.parseInt(group.padEnd(5, "0"), 2)]).join("");
}
