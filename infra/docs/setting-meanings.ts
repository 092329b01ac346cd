// The meaning of settings whose field in the sources has no comment of its own, or whose name has several comments in one file. An entry
// of one key precedes the comments of the sources.

/** By the key as in the document; `channels.*` is every channel. */
export const settingMeanings: Readonly<Record<string, string>> = {
  preset: "The set of settings to start from; every other source overrides it.",
  "queue.mode":
    "What happens to a message that arrives while its thread is busy. `steer`: it joins the running turn at the next model call. `queue`: it becomes the next turn. `coalesce`: it waits for further messages of the same sender and becomes one turn with them. `interrupt`: it stops the running turn. `reject`: it is refused.",
  "agent.effort":
    "How much the model thinks and writes; omitted: the model's default. Models without such a level ignore it.",
  "agent.thinking": "`adaptive`: the model decides when it thinks before it answers. `off`: it does not think.",
  "agent.max_output_tokens": "Maximum tokens of one answer of the model, with its thinking.",
  "agent.tools": "Names of the agent's own tools; profiles do not inherit them. Omitted: all tools.",
  "agent.max_concurrent_turns": "Maximum turns that run at the same time; further ones wait.",
  "output.mode":
    "`final_text`: the last text of a turn is the answer. `message_tool`: only texts that the tool `message` sends are. `both`: either, without duplicates.",
  "profiles.<name>.effort": "As `agent.effort`; omitted: that of the main agent.",
  "profiles.<name>.thinking": "As `agent.thinking`; omitted: that of the main agent.",
  "profiles.<name>.max_output_tokens": "As `agent.max_output_tokens`; omitted: that of the main agent.",
  "profiles.<name>.tools": "Names of tools; an empty list means none. Omitted: the six read-only tools.",
  "profiles.<name>.max_iterations":
    "Maximum model calls of one run; 0: no limit. Omitted: the limit of the main agent or of sub-agents.",
  "profiles.<name>.max_tool_calls": "Maximum tool calls of one run; 0: no limit. Omitted: `limits.max_tool_calls`.",
  "profiles.<name>.max_turn_seconds": "Maximum seconds of one run; 0: no limit. Omitted: `limits.max_turn_seconds`.",
  "profiles.<name>.execution":
    "Which calls of one model reply run at the same time. `readonly_parallel`: only those that change nothing. `parallel`: all. `serial`: none. Omitted: `tools.execution`.",
  "subagents.enabled": "The agent can start sub-agents.",
  "subagents.mode": "Default of a call: wait for the result, or continue and get the result as input.",
  "subagents.max_iterations": "Maximum model calls of one child; 0: no limit.",
  "models.known.<name>.price.output": "US dollars for a million tokens of output.",
  "memory.embedder.model": "The server's name of the embedding model.",
  "memory.consolidation.model": "The model, preferably a cheap one; omitted: the agent's model.",
  "context.max_skills_chars":
    "Maximum characters of the list of skills in the prompt; skills that do not fit are counted.",
  "workspace.folders.<name>":
    "The absolute path of a folder that sessions of the owner can work in, on every machine of the tool-runner.",
  "workspace.mounts.<name>":
    "The absolute path of a folder that commands of the owner's turns can read at `/mnt/<name>`. Only with the isolation bubblewrap.",
  "attachments.transcription.model": "The service's name of the model that transcribes. Requires `url`.",
  "attachments.transcription.timeout_seconds": "Maximum seconds of one transcription.",
  "tools.exec.timeout_seconds": "Maximum seconds of a command, unless its call names another time.",
  "tools.secrets.exec.<name>.env": "The variable of the tool-runner's environment that contains the secret.",
  "tools.web.timeout_seconds": "Maximum seconds of one request.",
  "tools.web.search.provider": "The service that searches the web; omitted: the agent has no web search.",
  "mcp.servers.<name>.enabled": "False: the server is not started, and the agent has none of its tools.",
  "mcp.servers.<name>.args": "Arguments of `command`.",
  "mcp.servers.<name>.headers_env.<name>":
    "A header of every request: the variable of the tool-runner's environment with its value.",
  "mcp.servers.<name>.oauth.client_id":
    "The id of a registered client; omitted: Parley uses its metadata document or registers itself.",
  "mcp.servers.<name>.oauth.client_secret_env":
    "The variable of the tool-runner's environment with the client's secret; omitted: none.",
  "mcp.servers.<name>.oauth.scopes": "The scopes to request; empty: the request names none.",
  "mcp.servers.<name>.oauth.identity.client_id": "Parley's client id at the identity provider.",
  "mcp.servers.<name>.oauth.identity.client_secret_env":
    "The variable of the tool-runner's environment with the secret of that client; omitted: none.",
  "mcp.servers.<name>.sampling.enabled": "The server may request model answers during its calls, at the agent's cost.",
  "voice.tools.stop": "Ends a session.",
  "voice.start_arguments.<name>": "An additional argument of the start call, such as `endpointing_ms`.",
  "voice.resource": "Accepted without effect until the next release.",
  "voice.push_poll_ms": "Accepted without effect until the next release.",
  "voice.speech.model": "The service's name of the model that speaks.",
  "voice.speech.timeout_seconds": "Maximum seconds to synthesize one text.",
  "hooks[].event": "When the hook runs; docs/hooks.md describes each event.",
  "hooks[].timeout_seconds": "Maximum seconds of one run; afterwards `on_failure` applies.",
  "observers[].timeout_seconds": "Maximum seconds of one request; it then counts as failed.",
  "channels.*.dm_policy":
    "Who may write directly. `pairing`: people who are listed or admitted; others get a pairing code. `allowlist`: only people who are listed or admitted. `open`: everybody, as a guest. `disabled`: only the owner.",
  "channels.*.profile": "The profile that answers; omitted: the main agent.",
  "channels.*.preview":
    "False: an answer is sent only when it is complete. Omitted: it is shown while it is written, where the platform can edit messages.",
  "channels.*.api_root": "The address of the platform's API.",
  "channels.*.api_version": "The version of the platform's API.",
  "channels.irc.<name>.host": "The name of the server.",
  "channels.irc.<name>.port": "The server's port.",
  "channels.irc.<name>.tls": "False: the connection is not encrypted.",
  "channels.irc.<name>.nick": "The agent's nick.",
  "channels.irc.<name>.password_env": "The variable with the password of the services account.",
  "channels.email.<name>.name": "The name in the From of answers; omitted: none.",
  "channels.email.<name>.imap_host": 'The server with the mailbox, with `mode = "imap"`.',
  "channels.email.<name>.imap_port": "Its port.",
  "channels.email.<name>.imap_tls": "Encryption of that connection: from its beginning, by STARTTLS, or none.",
  "channels.email.<name>.imap_mailbox": "The folder that is read.",
  "channels.email.<name>.lmtp_host": 'The address on which mail is received, with `mode = "lmtp"`.',
  "channels.email.<name>.lmtp_port": "The port on which mail is received.",
  "channels.email.<name>.smtp_host": "The server that sends mail.",
  "channels.email.<name>.smtp_port": "Its port.",
  "channels.email.<name>.smtp_tls": "Encryption of that connection: from its beginning, by STARTTLS, or none.",
  "channels.email.<name>.password_env": "The variable with the password for IMAP and SMTP.",
  "webhooks.<name>.reply_to.channel": "The channel of the destination, such as `telegram`.",
  "webhooks.<name>.reply_to.account": "The account of the destination, an account of `parley.toml`.",
  "webhooks.<name>.reply_to.conversation": "The id of the conversation on that platform.",
  "oidc.scopes.talk": "The values of `claim` that may write to the agent.",
  "oidc.scopes.read": "The values of `claim` that may read sessions and states.",
  "oidc.scopes.approve": "The values of `claim` that may decide approvals.",
  "oidc.scopes.admin": "The values of `claim` that may change everything.",
};
