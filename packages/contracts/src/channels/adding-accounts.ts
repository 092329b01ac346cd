// The section of docs/channels.md about adding an account, with examples of two channels.
export const addingAccounts = `While Parley runs, \`npx parley channels add <channel>\` adds an account without a file and a restart:

1. It prints the steps of the channel and asks for the settings and secrets that the account needs. Where a step says *the secret for \`token_env\`*, enter the secret itself when the command asks for it.
2. The platform confirms the secrets. If it refuses them, nothing is added, and the command says why.
3. Write to the account from your own account there. The answer is a pairing code. Enter it in the terminal, and you are the owner; everybody else who writes receives a code too, and you decide with \`npx parley pairing approve CODE\`.
4. Write again: the agent answers. \`npx parley channels list\` shows the state, \`npx parley channels test <channel>:<account>\` checks the secrets again, and \`npx parley channels logs <channel>:<account>\` shows what the gateway logged about it, also why it ignored a message.
5. For a group or channel, invite the account, mention it there, and read the id from that log. Then run \`npx parley channels add\` again with \`--setting groups=<id>\`; a secret that you leave empty stays.

The account is called \`main\`; \`npx parley channels add slack:work\` gives it another name. \`--setting name=value\` sets what the tables below list, and what every account has: \`owners\`, \`allow_from\`, \`groups\`, \`require_mention\` and others ([who may write](configuration.md#people)). For example:

\`\`\`sh
npx parley channels add slack --setting groups=C0123456789 --setting require_mention=false
\`\`\`

- A secret that you enter is a file with mode 0600 in the folder \`PARLEY_SECRETS_DIR\` of the gateways, with the name of its variable; \`npm start\` sets the folder to \`secrets\` in the data folder. Gateways on several machines need a shared folder or volume. Without the folder, put the secret in an environment variable of the gateways and name it: \`--setting token_env=PARLEY_CHANNEL_…\`.
- Settings of added accounts are in the database, and every gateway starts them within 5 s.
- \`npx parley channels add\` with the name of an added account changes it: repeat all settings that differ from the defaults.
- \`npx parley channels remove\` ends the connection of an added account, deletes its stored secrets and drops its waiting texts.
- In a script, the secrets are read from files (\`--secret-file token_env=token.txt\`) or from standard input, one a line. Over HTTP: \`POST /api/channels\`.

## In parley.toml

An account can also be a table \`[channels.<channel>.<account>]\` in \`parley.toml\`. It names the environment variables that contain its secrets:

\`\`\`toml
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
owners = ["123456789"]
\`\`\`

\`\`\`sh
PARLEY_CHANNEL_TELEGRAM=… npm start
\`\`\`

\`npx parley config check\` reports mistakes and missing variables. A change needs a restart. If an added account and a table have the same name, the table applies.`;
