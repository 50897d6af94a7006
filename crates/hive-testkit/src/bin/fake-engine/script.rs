//! Where steps come from: the prompt, the script, or nothing at all.

use std::{
    collections::VecDeque,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

/// The steps for this prompt.
pub(crate) fn steps_for(prompt: &str) -> VecDeque<String> {
    // A brief about earlier messages goes before the message itself, and holds their bodies.
    let own = prompt.rsplit_once(" begins · ");
    let inline = own
        .map_or(prompt, |(_, body)| body)
        .lines()
        .filter_map(|line| line.strip_prefix("!fake "));
    let inline: Vec<_> = inline.collect();
    if let Some(plan) = inline.iter().find_map(|step| step.strip_prefix("plan ")) {
        return planned(&inline, runs_of(plan));
    }
    if !inline.is_empty() {
        return inline.into_iter().map(str::to_owned).collect();
    }
    let script = std::env::var_os("FAKE_ENGINE_SCRIPT").map(PathBuf::from);
    if let Some(steps) = script.and_then(|path| section(&path, prompt)) {
        return steps;
    }
    let default: &[&str] = match prompt.trim() {
        "/compact" => &["init", "compact", "result"],
        _ => &["init", "say ok", "result ok"],
    };
    default.iter().map(|&step| step.to_owned()).collect()
}

/// What a plan says of its `run`-th run.
fn planned(lines: &[&str], run: u64) -> VecDeque<String> {
    let (mut own, mut others) = (VecDeque::new(), VecDeque::new());
    for line in lines.iter().filter(|line| !line.starts_with("plan ")) {
        match line.split_once(": ") {
            Some((number, step)) if number.parse() == Ok(run) => own.push_back(step.to_owned()),
            Some((number, _)) if number.parse::<u64>().is_ok() => {}
            _ => others.push_back((*line).to_owned()),
        }
    }
    if own.is_empty() { others } else { own }
}

/// How many runs the plan has had, this one included: a file beside the record grows by a byte each.
fn runs_of(plan: &str) -> u64 {
    let mut path = std::env::var_os("FAKE_ENGINE_RECORD").unwrap_or_default();
    path.push(format!(".{plan}"));
    let counted = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| {
            file.write_all(b".")?;
            file.metadata()
        });
    counted.map_or(1, |file| file.len())
}

/// The first section of the script that fits.
fn section(path: &Path, prompt: &str) -> Option<VecDeque<String>> {
    let script = fs::read_to_string(path).ok()?;
    let mut found: Option<VecDeque<String>> = None;
    for (number, line) in script.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (once, line) = match line.strip_prefix("once ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        if let Some(word) = line.strip_prefix("on ") {
            if found.is_some() {
                return found;
            }
            let fits = word == "*" || prompt.contains(word);
            if fits && (!once || first_time(path, number)) {
                found = Some(VecDeque::new());
            }
        } else if let Some(steps) = &mut found {
            steps.push_back(line.to_owned());
        }
    }
    found
}

/// Whether this section has never been played: the marker is created by one process only.
fn first_time(script: &Path, line: usize) -> bool {
    let mut marker = script.as_os_str().to_owned();
    marker.push(format!(".used-{line}"));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(marker)
        .is_ok()
}

/// A number; 0 for what is none.
pub(crate) fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}

/// The same, as a size.
pub(crate) fn size(text: &str) -> usize {
    usize::try_from(number(text)).unwrap_or(0)
}
