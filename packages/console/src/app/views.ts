// The views of the console, in the order of the navigation, with their keys.
import type { ComponentType } from "preact";
import { Chat } from "../chat/chat.tsx";
import type { IconName } from "../parts/icons.tsx";
import { Approvals } from "../views/approvals.tsx";
import { Channels } from "../views/channels.tsx";
import { Cluster } from "../views/cluster.tsx";
import { Documents } from "../views/documents.tsx";
import { People } from "../views/people.tsx";
import { Schedules } from "../views/schedules.tsx";
import { SessionView } from "../views/session.tsx";
import { Sessions } from "../views/sessions.tsx";
import { Settings } from "../views/settings.tsx";
import { Tools } from "../views/tools.tsx";
import { Turn } from "../views/turn.tsx";
import { Usage } from "../views/usage.tsx";

export interface View {
  name: string;
  title: string;
  icon: IconName;
  /** Pressed after `g`; undefined: the view shows one thing and is not in the navigation. */
  key?: string;
  component: ComponentType;
}

export const views: readonly View[] = [
  { name: "chat", title: "Chat", icon: "chat", key: "c", component: Chat },
  { name: "sessions", title: "Sessions", icon: "sessions", key: "s", component: Sessions },
  { name: "approvals", title: "Approvals", icon: "approvals", key: "a", component: Approvals },
  { name: "cluster", title: "Cluster", icon: "cluster", key: "l", component: Cluster },
  { name: "usage", title: "Usage", icon: "usage", key: "u", component: Usage },
  { name: "schedules", title: "Schedules", icon: "schedules", key: "j", component: Schedules },
  { name: "documents", title: "Memory", icon: "documents", key: "m", component: Documents },
  { name: "tools", title: "Tools", icon: "tools", key: "t", component: Tools },
  { name: "people", title: "People", icon: "people", key: "p", component: People },
  { name: "channels", title: "Channels", icon: "channels", key: "h", component: Channels },
  { name: "settings", title: "Settings", icon: "settings", key: "e", component: Settings },
  { name: "session", title: "Session", icon: "sessions", component: SessionView },
  { name: "turn", title: "Turn", icon: "clock", component: Turn },
];

/** The views of the navigation. */
export const listedViews: readonly (View & { key: string })[] = views.flatMap((view) =>
  view.key === undefined ? [] : [{ ...view, key: view.key }],
);
