//! The files of the console: embedded, told apart by a version of them all, and gzipped once.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use super::imports;
use super::lean::lean;
use crate::auth::to_hex;

/// A debug build reads files from disk, where they may change at any time.
pub(super) const MAY_CHANGE: bool = cfg!(debug_assertions);

/// What is served. Tests, types and texts for contributors lie beside it and are not.
#[derive(RustEmbed)]
#[folder = "../../console"]
#[include = "index.html"]
#[include = "main.js"]
#[include = "data/*"]
#[include = "parts/*"]
#[include = "screens/*"]
#[include = "shell/*"]
#[include = "styles/*"]
#[include = "vendor/*"]
#[exclude = "*.d.ts"]
#[exclude = "*.md"]
struct Files;

/// A file, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Asset {
    pub(super) media: &'static str,
    /// A weak one: it stands for what is meant, packed or not.
    pub(super) tag: String,
    pub(super) plain: Bytes,
    /// Only where that makes it smaller.
    pub(super) gzip: Option<Bytes>,
}

impl Asset {
    fn new(name: &str, plain: Bytes) -> Self {
        let tag = format!("W/\"{}\"", short(Sha256::digest(&plain).into()));
        let gzip = gzip(&plain).filter(|gzip| gzip.len() < plain.len());
        Self { media: media(name), tag, plain, gzip }
    }
}

/// What all files together are called. It changes with any of them.
pub(super) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        if MAY_CHANGE {
            return "dev".into();
        }
        version_of(
            Files::iter().filter_map(|name| Some((name.clone().into_owned(), served(&name)?))).collect(),
        )
    })
}

/// It is told from what is sent, and not from what that was made of: a browser keeps it for good.
fn version_of(files: BTreeMap<String, Bytes>) -> String {
    let mut digest = Sha256::new();
    for (name, plain) in files {
        digest.update(name.as_bytes());
        digest.update([0]);
        digest.update(Sha256::digest(&plain));
    }
    short(digest.finalize().into())
}

/// The page that loads the others. It names their version, and what the first module needs: a browser that finds out
/// by itself does so one after the other.
pub(super) fn index() -> Asset {
    kept("index.html", || {
        let file = Files::get("index.html")?;
        let text = String::from_utf8_lossy(&file.data);
        let link = |name| format!("  <link rel=\"modulepreload\" href=\"/console/{{version}}/{name}\">\n");
        let needed: String = imports::all("main.js", text_of).into_iter().map(link).collect();
        let text = text.replace("</head>", &format!("{needed}</head>")).replace("{version}", version());
        Some(Asset::new("index.html", text.into()))
    })
    .unwrap_or_else(|| Asset::new("index.html", Bytes::new()))
}

pub(super) fn find(name: &str) -> Option<Asset> {
    if name == "index.html" || !is_plain(name) {
        return None;
    }
    kept(name, || Some(Asset::new(name, served(name)?)))
}

/// Where files are read from disk, a name could lead through a folder that is served to one that is not.
fn is_plain(name: &str) -> bool {
    name.split(['/', '\\']).all(|part| !matches!(part, "" | "." | ".."))
}

/// What is sent of a file.
fn served(name: &str) -> Option<Bytes> {
    let own = name.ends_with(".js") && !name.starts_with("vendor/");
    Some(match own {
        true => lean(&text_of(name)?).into(),
        false => Files::get(name)?.data.into_owned().into(),
    })
}

fn text_of(name: &str) -> Option<String> {
    Files::get(name).map(|file| String::from_utf8_lossy(&file.data).into_owned())
}

/// What is made once of each file. Only names of files that exist are kept, so that it cannot grow.
fn kept(name: &str, make: impl FnOnce() -> Option<Asset>) -> Option<Asset> {
    static KEPT: Mutex<Option<HashMap<String, Asset>>> = Mutex::new(None);
    if MAY_CHANGE {
        return make();
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some(asset) = kept.get(name) {
        return Some(asset.clone());
    }
    let asset = make()?;
    kept.insert(name.into(), asset.clone());
    Some(asset)
}

fn gzip(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn short(digest: [u8; 32]) -> String {
    to_hex(&digest).chars().take(16).collect()
}

fn media(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_changes_with_anything_that_is_sent() {
        let version = |files: &[(&str, &'static str)]| {
            version_of(files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect())
        };
        let first = version(&[("a.js", "1"), ("b.js", "2")]);
        assert_eq!(version(&[("b.js", "2"), ("a.js", "1")]), first);
        for other in
            [[("a.js", "1"), ("b.js", "3")], [("a.js", "1"), ("c.js", "2")], [("a.js", "2"), ("b.js", "1")]]
        {
            assert_ne!(version(&other), first, "{other:?}");
        }
    }

    #[test]
    fn only_files_that_are_meant_to_be_served_are_found() {
        assert!(find("screens/registry.js").is_some());
        for name in [
            "index.html",
            "tests/one.mjs",
            "screens/../tests/one.mjs",
            "screens/./registry.js",
            "screens//registry.js",
        ] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}
