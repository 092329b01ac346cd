// Objects without undefined fields, as `exactOptionalPropertyTypes` requires.

type Keys<T, Optional extends boolean> = {
  [K in keyof T]-?: undefined extends T[K] ? (Optional extends true ? K : never) : Optional extends true ? never : K;
}[keyof T];

/** `T` whose fields that may be undefined are optional instead. */
export type WithoutUndefined<T> = { [K in Keys<T, false>]: T[K] } & { [K in Keys<T, true>]?: Exclude<T[K], undefined> };

/** A copy without the fields whose value is undefined. */
export function omitUndefined<T extends object>(fields: T): WithoutUndefined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as WithoutUndefined<T>;
}
