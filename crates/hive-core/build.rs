//! Embeds the page that `make web` built into `web/dist`. Without it the daemon serves a page that
//! says how to build it, so that Rust alone is enough to work on the daemon.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

const NOT_BUILT: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>hyperhive</title>\
    <p>This daemon was built without its page: run <code>make build</code>. The command line does \
    everything that the page does: <code>hive-c0re --help</code>.";

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = here.join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("page.rs");
    fs::write(out, page(&dist)?)
}

fn page(dist: &Path) -> io::Result<String> {
    let shell = fs::read_to_string(dist.join("index.html")).unwrap_or(NOT_BUILT.to_owned());
    let mut code = format!("const SHELL: &str = {shell:?};\nconst ASSETS: &[Asset] = &[\n");
    let mut names = Vec::new();
    if let Ok(entries) = fs::read_dir(dist.join("assets")) {
        for entry in entries {
            names.push(entry?.path());
        }
    }
    names.sort();
    for path in names {
        let kind = match path.extension().and_then(|extension| extension.to_str()) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => continue,
        };
        let name = path.file_name().unwrap_or_default();
        let packed = path.with_added_extension("gz");
        code += &format!(
            "Asset {{ name: {name:?}, kind: {kind:?}, plain: include_bytes!({path:?}), gzip: include_bytes!({packed:?}) }},\n"
        );
    }
    Ok(code + "];\n")
}
