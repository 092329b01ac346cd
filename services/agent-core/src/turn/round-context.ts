// The context of a round of tools, derived from its turn, and the live events of each call.
import { addressesGivenIn } from "../policy/web-access.ts";
import type { RoundContext } from "./tool-round.ts";
import type { TurnState } from "./state.ts";

/** How much of a call's input and result live events contain, in characters. */
const previewChars = 2_000;

/** `steered`: whether input is waiting that may join the turn. */
export function roundContext(turn: TurnState, { slot, steered }: Pick<RoundContext, "slot" | "steered">): RoundContext {
  return {
    turn: turn.claimed,
    policy: turn.policy,
    overrides: turn.session.overrides,
    toolbox: turn.toolbox,
    place: turn.place,
    heard: turn.heard,
    given: () => addressesGivenIn([...turn.view.messages, ...turn.pending]),
    say: turn.publish.bind(turn),
    release: turn.release.bind(turn),
    keep: turn.keep.bind(turn),
    slot,
    steered,
    withSampling: (n, tool, stop, work) =>
      turn.deps.sampling.during(
        {
          turn: turn.claimed,
          n,
          tool,
          limits: () => turn.policy.limits,
          progress: () => turn.progress(),
          used: turn.used.bind(turn),
          notice: (text) => turn.publish({ type: "notice", turnId: turn.claimed.turnId, text }),
        },
        stop,
        work,
      ),
    observer: {
      started: ({ turnId, callId, tool }, input) =>
        turn.publish({ type: "tool.started", turnId, callId, tool, input: input.slice(0, previewChars) }),
      finished: ({ turnId, callId, tool }, { isError, content, isolation }, durationMs) =>
        turn.publish({
          type: "tool.finished",
          turnId,
          callId,
          tool,
          isError,
          content: content.slice(0, previewChars),
          durationMs: Math.round(durationMs),
          ...(isolation === undefined ? {} : { isolation }),
        }),
    },
  };
}
