// Describes events of GitHub. Pure.
import { after, type Fields, labelled, lines, someOf, words } from "./fields.ts";

/** Where the subject of an event is, the more specific before the more general. */
const subjects = [
  "pull_request",
  "issue",
  "discussion",
  "release",
  "workflow_run",
  "workflow_job",
  "check_run",
  "check_suite",
  "deployment",
  "milestone",
  "project",
  "projects_v2_item",
  "package",
  "registry_package",
  "alert",
  "secret_scanning_alert",
  "label",
  "team",
  "member",
  "hook",
] as const;

/** A description with the texts that people wrote; null when nothing is known about the event. */
export function githubText(event: string, body: Fields): string | null {
  if (event === "") return null;
  const where = body.line("repository.full_name", "organization.login", "enterprise.slug");
  const head = words("GitHub:", event, body.line("action"), after("in", where), after("by", body.line("sender.login")));
  if (event === "push") return lines(head, pushLines(body));
  const found = subjects.map((name) => body.at(name)).find((each) => each.exists);
  const comment = body.at("comment").exists ? body.at("comment") : body.at("review");
  return lines(
    head,
    body.line("zen"),
    labelled(body.line("ref_type"), body.line("ref")),
    found === undefined ? "" : subjectLines(found),
    labelled("label", body.line("label.name")),
    labelled("assigned to", body.line("assignee.login")),
    labelled("state", words(body.line("deployment_status.state", "state"), body.line("description"))),
    comment.exists ? commentLines(comment) : "",
    comment.exists || found === undefined ? "" : found.text("body", "description", "output.summary"),
  );
}

function subjectLines(subject: Fields): string[] {
  const number = subject.line("number");
  const branch = subject.line("head.ref", "head_branch", "ref", "check_suite.head_branch");
  const base = subject.line("base.ref");
  return [
    words(
      number === "" ? "" : `#${number}`,
      subject.line("title", "display_title", "name", "tag_name", "environment", "login"),
    ),
    labelled(
      "state",
      words(
        subject.line("draft") === "true" ? "draft" : "",
        subject.line("merged") === "true" ? "merged" : subject.line("conclusion", "state", "status"),
      ),
    ),
    labelled("branch", words(branch, branch === "" || base === "" ? "" : `into ${base}`)),
    labelled("author", subject.line("user.login", "author.login", "creator.login", "actor.login")),
    labelled(
      "labels",
      subject
        .list("labels")
        .map((label) => label.line("name"))
        .join(", "),
    ),
    subject.line("html_url", "url"),
  ];
}

function commentLines(comment: Fields): string[] {
  const file = comment.line("path");
  return [
    words(
      "comment of",
      comment.line("user.login"),
      comment.line("state") === "" ? "" : `(${comment.line("state")})`,
      file === "" ? "" : `on ${file}`,
    ),
    comment.line("html_url"),
    comment.text("body"),
  ];
}

function pushLines(body: Fields): string[] {
  const commits = body.list("commits").map((commit) => {
    const author = commit.line("author.username", "author.name");
    return words("-", commit.line("id").slice(0, 7), commit.line("message"), author === "" ? "" : `(${author})`);
  });
  const what = ["created", "deleted", "forced"].filter((name) => body.line(name) === "true").join(", ");
  return [
    labelled("ref", words(body.line("ref"), what === "" ? "" : `(${what})`)),
    body.line("compare"),
    ...someOf(commits),
  ];
}
