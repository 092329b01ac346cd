/** A new key of a NATS user: `seed` (SU…) is secret, `publicKey` (U…) is not. */
export function createUserKey(): { seed: string; publicKey: string };
