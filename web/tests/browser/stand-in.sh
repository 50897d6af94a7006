#!/bin/sh
# An engine that wants a login first: it fails as `claude` does without one, and takes one code.
credentials=$CLAUDE_CONFIG_DIR/.credentials.json
case "$*" in
*--version*)
	echo '2.1.325 (stand-in)'
	;;
--help)
	echo '--print --verbose --output-format --model --continue --settings --system-prompt-file'
	echo '--mcp-config --strict-mcp-config --tools --allowedTools'
	;;
*'auth login'*)
	echo 'Open https://login.example.test/authorize?state=1 in a browser.'
	printf 'Paste the code here: '
	read -r code
	if [ "$code" != let-me-in ]; then
		echo 'That code is wrong.'
		exit 1
	fi
	echo '{"token":"made up"}' >"$credentials"
	echo 'Logged in.'
	;;
*)
	cat >/dev/null
	echo '{"type":"system","subtype":"init","session_id":"s1","model":"haiku","tools":[],"mcp_servers":[]}'
	if [ -e "$credentials" ]; then
		echo '{"type":"assistant","session_id":"s1","message":{"id":"m1","role":"assistant","model":"haiku","content":[{"type":"text","text":"I am in."}],"usage":{"input_tokens":5,"output_tokens":3}}}'
		echo '{"type":"result","subtype":"success","is_error":false,"result":"I am in.","session_id":"s1","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0,"usage":{"input_tokens":5,"output_tokens":3}}'
	else
		echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Not logged in · Please run /login","session_id":"s1","num_turns":1,"duration_ms":1,"duration_api_ms":0,"total_cost_usd":0,"terminal_reason":"api_error","usage":{"input_tokens":0,"output_tokens":0}}'
		exit 1
	fi
	;;
esac
