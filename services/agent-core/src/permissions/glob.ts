// The patterns of rules, as the permission engine uses them. They are shared with the tool-runner: `@parley/contracts`.
export {
  compileAnywhere,
  compileCommand,
  compilePath,
  compileText,
  escapePattern,
  type TextMatcher as Matcher,
} from "@parley/contracts";
