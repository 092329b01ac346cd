// Describes events of Sentry's integration platform. Pure.
import { after, type Fields, labelled, lines, words } from "./fields.ts";

/** A description; null for a body without data. `resource`: the header Sentry-Hook-Resource. */
export function sentryText(resource: string, body: Fields): string | null {
  const data = body.at("data");
  if (!data.exists) return null;
  const subject = ["issue", "event", "error", "metric_alert", "installation"]
    .map((name) => data.at(name))
    .find((each) => each.exists);
  const about = subject ?? data;
  return lines(
    words(
      "Sentry:",
      resource,
      body.line("action"),
      after("in", about.line("project.slug", "project") || data.line("project_slug")),
      after("by", body.line("actor.name")),
    ),
    words(about.line("shortId"), about.line("title") || data.line("description_title")),
    labelled("where", about.line("culprit", "location")),
    labelled("level", about.line("level")),
    labelled("status", about.line("status", "substatus")),
    labelled("rule", data.line("triggered_rule", "metric_alert.alert_rule.name")),
    labelled("events", about.line("count")),
    labelled("users", about.line("userCount")),
    about.line("web_url", "permalink", "url") || data.line("web_url"),
    about.text("message", "metadata.value") || data.text("description_text", "comment"),
  );
}
