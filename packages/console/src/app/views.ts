// The views of the console, in the order of the navigation, with their keys.
import type { ComponentType } from "preact";
import type { IconName } from "../parts/icons.tsx";
import { Approvals } from "../views/approvals.tsx";
import { Chat } from "../chat/chat.tsx";

export interface View {
  name: string;
  title: string;
  icon: IconName;
  /** Pressed after `g`. */
  key: string;
  component: ComponentType;
}

export const views: readonly View[] = [
  { name: "chat", title: "Chat", icon: "chat", key: "c", component: Chat },
  { name: "approvals", title: "Approvals", icon: "approvals", key: "a", component: Approvals },
];
