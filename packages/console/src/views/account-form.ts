// The request that the form of a new account describes. Pure.

/** Settings whose values are lists; the form separates them by commas. */
const lists = new Set(["owners", "allow_from", "groups"]);

/** The request that the form describes. Throws an Error that names a line of the further settings that is wrong. */
export function bodyOf(channel: string, form: FormData): object {
  const settings: Record<string, unknown> = {};
  const secrets: Record<string, string> = {};
  const texts = [...form].flatMap(([name, value]) =>
    typeof value === "string" ? [[name, value.trim()] as const] : [],
  );
  for (const [name, value] of texts) {
    const [type, setting] = name.split(":");
    if (setting === undefined || value === "") continue;
    if (type === "secret") secrets[setting] = value;
    else settings[setting] = lists.has(setting) ? itemsOf(value) : value;
  }
  const further = texts.find(([name]) => name === "further")?.[1] ?? "";
  for (const line of further.split("\n").filter((each) => each.trim() !== "")) {
    const [, setting, value] = /^\s*([a-z][a-z0-9_]*)\s*=\s*(.+?)\s*$/.exec(line) ?? [];
    if (setting === undefined || value === undefined)
      throw new Error(`"${line.trim()}" is not in the form name = value`);
    settings[setting] = valueOf(value);
  }
  const account = texts.find(([name]) => name === "account")?.[1];
  return { channel, account, settings, secrets };
}

function itemsOf(text: string): string[] {
  return text.split(",").flatMap((item) => (item.trim() === "" ? [] : [item.trim()]));
}

/** In a value of TOML on one line: strings of either kind, comments, trailing commas, and underscores in numbers. */
const tomlTokens = /"(?:\\.|[^"\\])*"|'([^']*)'|#.*$|,(?=\s*\])|(?<=\d)_(?=\d)/g;

/**
 * A value as in parley.toml; anything else is a text without quotes. What TOML has beyond JSON on one line is rewritten: its parsers
 * are larger than what the size limit of the page leaves.
 */
function valueOf(text: string): unknown {
  const json = text.replace(tomlTokens, (token, literal: string | undefined) => {
    if (literal !== undefined) return JSON.stringify(literal);
    return token.startsWith('"') ? token : "";
  });
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return text;
  }
}
