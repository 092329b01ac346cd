// Re-exports the rule patterns of `@parley/contracts`, which the tool-runner uses too.
export {
  compileAnywhere,
  compileCommand,
  compilePathPattern,
  compileText,
  escapePattern,
  type TextMatcher as Matcher,
} from "@parley/contracts";
