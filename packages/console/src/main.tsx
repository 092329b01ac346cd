// Starts the console.
import "./style/base.css";
import "./style/shell.css";
import "./style/chat.css";
import "./style/views.css";
import { render } from "preact";
import { App } from "./app/app.tsx";
import { startRouter } from "./app/router.ts";
import { beginSession } from "./app/sign-in.tsx";

const root = document.querySelector("#app");
if (root !== null) {
  const begun = beginSession();
  startRouter();
  render(<App />, root);
  void begun;
}
