//! As much of Redis's protocol (RESP2) as three commands need.

use anyhow::{Result, bail};

/// A command as its wire bytes.
pub(crate) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut buffer = Vec::new();
    write_command(&mut buffer, words);
    buffer
}

/// Appends a command to a reused buffer.
pub(crate) fn write_command(buffer: &mut Vec<u8>, words: &[&[u8]]) {
    write_count(buffer, b'*', words.len());
    for word in words {
        write_count(buffer, b'$', word.len());
        buffer.extend_from_slice(word);
        buffer.extend_from_slice(b"\r\n");
    }
}

/// Whether the bytes hold a whole reply.
pub(crate) fn is_complete(reply: &[u8]) -> bool {
    walk(reply, &mut |_| {}).is_some()
}

/// The `index`th string of a complete reply, at whatever depth.
pub(crate) fn string(reply: &[u8], index: usize) -> Option<&[u8]> {
    let (mut seen, mut found) = (0, None);
    walk(reply, &mut |text| {
        if seen == index {
            found = Some(text);
        }
        seen += 1;
    });
    found
}

/// Turns an error reply into an error.
pub(crate) fn check(reply: &[u8]) -> Result<()> {
    if reply.first() == Some(&b'-') {
        bail!("redis: {}", String::from_utf8_lossy(reply).trim_end());
    }
    Ok(())
}

fn write_count(buffer: &mut Vec<u8>, sigil: u8, count: usize) {
    buffer.push(sigil);
    buffer.extend_from_slice(count.to_string().as_bytes());
    buffer.extend_from_slice(b"\r\n");
}

/// What follows the first value of `bytes`, telling `on_string` of every string in it; `None` when
/// the value is not all there.
fn walk<'a>(bytes: &'a [u8], on_string: &mut impl FnMut(&'a [u8])) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, mut rest) = (&bytes[..end], &bytes[end + 1..]);
    let (sigil, number) = head.split_first()?;
    let count = || str::from_utf8(number).ok()?.trim_end().parse::<i64>().ok();
    match sigil {
        b'$' => {
            // -1 is the null string, which has no content and no line end of its own.
            if let Ok(length) = usize::try_from(count()?) {
                on_string(rest.get(..length)?);
                rest = rest.get(length + 2..)?;
            }
        }
        b'*' => {
            for _ in 0..count()? {
                rest = walk(rest, on_string)?;
            }
        }
        _ => {}
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_strings() {
        let want = b"*2\r\n$4\r\nPING\r\n$0\r\n\r\n";
        assert_eq!(command(&[b"PING", b""]), want);
    }

    #[test]
    fn every_prefix_is_incomplete() {
        for reply in [
            &b"+OK\r\n"[..],
            b":1\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*1\r\n*2\r\n$2\r\nq0\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nb\r\n$2\r\nxx\r\n",
        ] {
            assert!(is_complete(reply), "{reply:?}");
            for end in 0..reply.len() {
                assert!(!is_complete(&reply[..end]), "{end} bytes of {reply:?}");
            }
        }
    }

    #[test]
    fn finds_the_message_id() {
        let reply =
            b"*1\r\n*2\r\n$2\r\nq0\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nb\r\n$1\r\nx\r\n";
        assert_eq!(string(reply, 1), Some(&b"1-0"[..]));
        assert_eq!(string(b"*-1\r\n", 1), None);
    }

    #[test]
    fn errors_are_errors() {
        assert!(check(b"-NOGROUP no such group\r\n").is_err());
        assert!(check(b"+OK\r\n").is_ok());
    }
}
