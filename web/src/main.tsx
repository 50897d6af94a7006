// The page of a port: the dashboard, or one agent. The host says which.

import { signal } from "@preact/signals";
import { render } from "preact";
import { AgentPage } from "./agent/page.tsx";
import { Dashboard } from "./dashboard/page.tsx";
import { begin, session } from "./session.ts";
import "./style/main.css";
import { SignIn } from "./ui/sign-in.tsx";
import { Toasts } from "./ui/toasts.tsx";

const page = signal<"dashboard" | "agent">(
  document.querySelector("meta[name='hive-page']")?.getAttribute("content") === "agent" ? "agent" : "dashboard",
);

function Page() {
  if (session.value === "asking") return <p class="boot">Opening the hive …</p>;
  if (session.value === "out") return <SignIn />;
  return page.value === "agent" ? <AgentPage base="/api" /> : <Dashboard />;
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
