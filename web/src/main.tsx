// The page of a port: the dashboard, or one agent. The host says which.

import { signal } from "@preact/signals";
import { render } from "preact";
import { AgentPage } from "./agent/page.tsx";
import { Feed } from "./api/feed.ts";
import { Dashboard } from "./dashboard/page.tsx";
import { route } from "./ui/route.ts";
import { begin, session } from "./session.ts";
import "./style/main.css";
import { SignIn } from "./ui/sign-in.tsx";
import { Toasts } from "./ui/toasts.tsx";

const page = signal<"dashboard" | "agent">(
  document.querySelector("meta[name='hive-page']")?.getAttribute("content") === "agent" ? "agent" : "dashboard",
);

/** The stream of an agent's own port; the dashboard has its own. */
const feed = new Feed("/api/events", false);

function Page() {
  if (session.value === "asking") return <p class="boot">Opening the hive …</p>;
  if (session.value === "out") return <SignIn />;
  return page.value === "agent" ? <AgentPage feed={feed} base="/api" event={route.value} /> : <Dashboard />;
}

function App() {
  return (
    <>
      <Page />
      <Toasts />
    </>
  );
}

const root = document.getElementById("app");
if (root !== null) {
  root.textContent = "";
  render(<App />, root);
  void begin();
}
