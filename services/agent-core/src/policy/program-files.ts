// Files that name programs for other tools to start: writing one is equivalent to running a command. Pure; checks names, not contents.

/** Folders, at any depth, whose files configure a tool or are its hooks. Lower case. */
const folders: ReadonlySet<string> = new Set([
  ".git", // config: core.fsmonitor, aliases, filters; hooks/
  ".githooks",
  ".hg",
  ".husky",
  ".vscode", // tasks.json, settings.json
  ".idea",
  ".zed",
  ".devcontainer",
  ".cargo", // config.toml: build.rustc-wrapper
  ".mvn",
  ".yarn",
  ".venv",
  "venv",
  "node_modules",
]);

/** Files by exact name, in any folder. Lower case. */
const files: ReadonlySet<string> = new Set([
  // Version control
  ".gitattributes",
  ".gitconfig",
  ".gitmodules",
  ".hgrc",
  "head", // makes a folder a bare Git repository, whose `config` names programs
  ".pre-commit-config.yaml",
  "lefthook.yml",
  "lefthook.yaml",
  // JavaScript
  "package.json",
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
  ".pnpmfile.cjs",
  ".pnpmfile.mjs",
  "pnpm-workspace.yaml",
  "bunfig.toml",
  "deno.json",
  "deno.jsonc",
  ".mocharc.json",
  ".lintstagedrc",
  "gulpfile.js",
  "gruntfile.js",
  // Python
  "pyproject.toml",
  "setup.py",
  "setup.cfg",
  "conftest.py",
  "pytest.ini",
  "tox.ini",
  "noxfile.py",
  "sitecustomize.py",
  "usercustomize.py",
  "uv.toml",
  "pyvenv.cfg",
  // Make and other builds
  "makefile",
  "gnumakefile",
  "cmakelists.txt",
  "cmakepresets.json",
  "cmakeuserpresets.json",
  "meson.build",
  "build.ninja",
  "justfile",
  ".justfile",
  "taskfile.yml",
  "taskfile.yaml",
  "rakefile",
  "gemfile",
  "vagrantfile",
  "dockerfile",
  "compose.yaml",
  "compose.yml",
  "docker-compose.yaml",
  "docker-compose.yml",
  "cargo.toml",
  "build.rs",
  "rust-toolchain",
  "rust-toolchain.toml",
  "pom.xml",
  "mvnw",
  "gradlew",
  "gradle.properties",
  "build.sbt",
  "build.xml",
  "build.bazel",
  "workspace.bazel",
  "module.bazel",
  ".bazelrc",
  "flake.nix",
  "shell.nix",
  "default.nix",
  // Shells, editors and environments
  ".envrc",
  ".env",
  ".mise.toml",
  "mise.toml",
  ".tool-versions",
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".profile",
  ".zshrc",
  ".zshenv",
  ".zprofile",
  ".zlogin",
  ".inputrc",
  ".vimrc",
  ".exrc",
  ".nvimrc",
  ".emacs",
  ".dir-locals.el",
  ".gdbinit",
  ".lldbinit",
  ".tmux.conf",
  ".screenrc",
  ".mcp.json",
]);

/** Files by name pattern, in any folder. */
const forms: readonly RegExp[] = [
  /\.(?:mk|cmake|gradle|bzl|pth)$/i,
  /\.gradle\.kts$/i,
  /\.config\.[cm]?[jt]s$/i, // vite.config.ts, eslint.config.mjs and others
  /^\..+rc\.[cm]?js$/i, // .eslintrc.cjs, .prettierrc.js and others
];

/** Whether a tool that reads this file starts programs that it names. `names`: the path's segments, relative to the workspace. */
export function startsPrograms(names: readonly string[]): boolean {
  const last = names.at(-1) ?? "";
  if (names.some((name) => folders.has(name.toLowerCase()))) return true;
  return files.has(last.toLowerCase()) || forms.some((form) => form.test(last));
}
