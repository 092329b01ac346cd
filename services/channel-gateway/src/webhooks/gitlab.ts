// Describes events of GitLab. Pure.
import { after, type Fields, labelled, lines, someOf, words } from "./fields.ts";

/** A description with the texts that people wrote; null for a body without a kind of event. */
export function gitlabText(body: Fields): string | null {
  const kind = body.line("object_kind", "event_name", "event_type");
  if (kind === "") return null;
  const object = body.at("object_attributes");
  const head = words(
    "GitLab:",
    kind,
    object.line("action") || body.line("action"),
    after("in", body.line("project.path_with_namespace", "project_name", "group.full_path")),
    after("by", body.line("user.username", "user_username", "user_name", "user.name")),
  );
  if (body.list("commits").length > 0 || kind === "push" || kind === "tag_push") return lines(head, pushLines(body));
  const commented = ["merge_request", "issue", "snippet", "commit"]
    .map((name) => body.at(name))
    .find((each) => each.exists);
  const isNote = kind === "note";
  return lines(
    head,
    isNote && commented !== undefined
      ? words("on", reference(commented), commented.line("title", "message"))
      : words(reference(object), object.line("title", "name") || body.line("name", "tag", "build_name")),
    labelled(
      "state",
      object.line("detailed_status", "status", "state") || body.line("build_status", "deployment_status", "status"),
    ),
    labelled("branch", branchOf(object) || body.line("ref")),
    labelled(
      "labels",
      body
        .list("labels")
        .map((label) => label.line("title"))
        .join(", "),
    ),
    object.line("url") || body.line("url", "deployable_url", "project.web_url"),
    object.text("note", "description", "content") || body.text("description", "build_failure_reason"),
    someOf(
      body
        .list("builds")
        .filter((job) => job.line("status") === "failed")
        .map((job) => words("- failed:", job.line("stage"), job.line("name"))),
    ),
  );
}

function reference(object: Fields): string {
  const number = object.line("iid");
  return number === "" ? "" : `${object.line("source_branch") !== "" ? "!" : "#"}${number}`;
}

function branchOf(object: Fields): string {
  const source = object.line("source_branch", "ref");
  const target = object.line("target_branch");
  return words(source, source === "" || target === "" ? "" : `into ${target}`);
}

function pushLines(body: Fields): string[] {
  const commits = body
    .list("commits")
    .map((commit) =>
      words("-", commit.line("id").slice(0, 8), commit.line("title", "message"), `(${commit.line("author.name")})`),
    );
  return [
    labelled("ref", body.line("ref")),
    labelled("commits", body.line("total_commits_count")),
    body.line("project.web_url"),
    ...someOf(commits),
  ];
}
