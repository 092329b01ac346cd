/** The group that may read the files; the containers are members of it. */
export declare const secretsGroup: number;
/** The secrets of each container by the name of their file, from the variables of .env. */
export declare function secretsOf(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, Record<string, string | undefined>>;
/** Files with further variables, next to .env. */
export declare const furtherFiles: Readonly<Record<string, string>>;
/** Writes `.secrets` next to `.env` in a folder, and removes the files of secrets that are gone. */
export declare function writeSecretFiles(folder: string): void;
