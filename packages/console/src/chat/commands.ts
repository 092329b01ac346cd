// The slash menu. Pure.

const maxShown = 8;

/** The commands that the text may become: those whose name begins with it. None once the name is complete and arguments follow. */
export function commandsFor<C extends { name: string }>(text: string, commands: readonly C[]): C[] {
  if (!/^\/[A-Za-z_-]*$/.test(text)) return [];
  const typed = text.toLowerCase();
  return commands.filter(({ name }) => name.startsWith(typed)).slice(0, maxShown);
}
