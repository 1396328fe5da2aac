//! The web console of Pointsman as it is served: the files in this package's folder, embedded in the binary, with one
//! version for all of them, and compressed once.
//!
//! ```text
//!  files ─▶ strip_comments ─▶ version, etag, gzip ─▶ Asset
//!  index.html + module_imports + version ─▶ index_page
//! ```
//!
//! A debug build reads the files from disk on each request, so that they can be edited while it runs.
//!
//! It has no HTTP: the server decides about paths, headers and caching. The files use only the public API, so nothing
//! here depends on another crate of Pointsman.

#![warn(missing_docs)]

mod module_imports;
mod strip_comments;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use strip_comments::strip_comment_lines;

/// Whether the files are read from disk, where they may change at any time: in a debug build.
pub const READS_FROM_DISK: bool = cfg!(debug_assertions);

/// The files that are served. Tests, types and texts for contributors in the same folder are not.
#[derive(RustEmbed)]
#[folder = "."]
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
struct ConsoleFiles;

/// A file, ready to be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Asset {
    /// The value for `Content-Type`.
    pub media_type: &'static str,
    /// A weak tag: it is the same for the compressed and the uncompressed body.
    pub etag: String,
    /// The uncompressed content.
    pub body: Bytes,
    /// The content compressed with gzip; `None` if compression does not make it smaller.
    pub gzip_body: Option<Bytes>,
}

impl Asset {
    fn new(name: &str, body: Bytes) -> Self {
        let etag = format!("W/\"{}\"", short_hash(Sha256::digest(&body).into()));
        let gzip_body = compress_gzip(&body).filter(|gzip_body| gzip_body.len() < body.len());
        Self { media_type: media_type_of(name), etag, body, gzip_body }
    }
}

/// The version of all files together, which changes with any of them; `dev` if they are read from disk.
pub fn files_version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        if READS_FROM_DISK {
            return "dev".into();
        }
        compute_files_version(
            ConsoleFiles::iter()
                .filter_map(|name| Some((name.clone().into_owned(), served_content(&name)?)))
                .collect(),
        )
    })
}

/// Computes the version from the served contents, not from the files, since browsers cache them forever.
fn compute_files_version(files: BTreeMap<String, Bytes>) -> String {
    let mut digest = Sha256::new();
    for (name, body) in files {
        digest.update(name.as_bytes());
        digest.update([0]);
        digest.update(Sha256::digest(&body));
    }
    short_hash(digest.finalize().into())
}

/// The page that loads the other files. It contains their version, and preloads all modules that the first one imports,
/// which a browser would otherwise discover one after the other.
pub fn index_page() -> Asset {
    get_or_build_asset("index.html", || {
        let file = ConsoleFiles::get("index.html")?;
        let text = String::from_utf8_lossy(&file.data);
        let link = |name| format!("  <link rel=\"modulepreload\" href=\"/console/{{version}}/{name}\">\n");
        let preload_links: String =
            module_imports::collect_imports("main.js", read_source_text).into_iter().map(link).collect();
        let text =
            text.replace("</head>", &format!("{preload_links}</head>")).replace("{version}", files_version());
        Some(Asset::new("index.html", text.into()))
    })
    .unwrap_or_else(|| Asset::new("index.html", Bytes::new()))
}

/// Finds a file that the page loads, by its path in the folder of the console.
pub fn find_asset(name: &str) -> Option<Asset> {
    if name == "index.html" || !is_safe_path(name) {
        return None;
    }
    get_or_build_asset(name, || Some(Asset::new(name, served_content(name)?)))
}

/// Whether a path has no `.` or `..` segments. On disk, these could lead to a folder that is not served.
fn is_safe_path(name: &str) -> bool {
    name.split(['/', '\\']).all(|part| !matches!(part, "" | "." | ".."))
}

/// The content of a file as it is served.
fn served_content(name: &str) -> Option<Bytes> {
    let is_console_module = name.ends_with(".js") && !name.starts_with("vendor/");
    Some(match is_console_module {
        true => strip_comment_lines(&read_source_text(name)?).into(),
        false => ConsoleFiles::get(name)?.data.into_owned().into(),
    })
}

fn read_source_text(name: &str) -> Option<String> {
    ConsoleFiles::get(name).map(|file| String::from_utf8_lossy(&file.data).into_owned())
}

/// Builds each asset once and caches it. Only existing files are cached, so that the cache is bounded.
fn get_or_build_asset(name: &str, build: impl FnOnce() -> Option<Asset>) -> Option<Asset> {
    static ASSET_CACHE: Mutex<Option<HashMap<String, Asset>>> = Mutex::new(None);
    if READS_FROM_DISK {
        return build();
    }
    let mut cached = ASSET_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let cached = cached.get_or_insert_default();
    if let Some(asset) = cached.get(name) {
        return Some(asset.clone());
    }
    let asset = build()?;
    cached.insert(name.into(), asset.clone());
    Some(asset)
}

fn compress_gzip(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// The first 8 bytes of a digest, in hexadecimal.
fn short_hash(digest: [u8; 32]) -> String {
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn media_type_of(name: &str) -> &'static str {
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
    use std::path::Path;

    use super::*;

    #[test]
    fn the_console_version_changes_with_any_served_file() {
        let version = |files: &[(&str, &'static str)]| {
            compute_files_version(files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect())
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
    fn only_served_console_files_are_found() {
        assert!(find_asset("screens/registry.js").is_some());
        for name in [
            "index.html",
            "src/lib.rs",
            "Cargo.toml",
            "tests/one.mjs",
            "screens/../tests/one.mjs",
            "screens/./registry.js",
            "screens//registry.js",
        ] {
            assert!(find_asset(name).is_none(), "{name}");
        }
    }
    #[test]
    fn vendored_files_match_their_checksums() {
        let vendor = Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor");
        let list = std::fs::read_to_string(vendor.join("checksums.txt")).unwrap();
        assert!(list.lines().count() >= 11);
        for line in list.lines() {
            let (sum, name) = line.split_once("  ").unwrap();
            let digest = Sha256::digest(std::fs::read(vendor.join(name)).unwrap());
            let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, sum, "console/vendor/{name} is not what checksums.txt says");
        }
        for entry in std::fs::read_dir(&vendor).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let known = name.ends_with(".d.ts") || ["checksums.txt", "licences"].contains(&name.as_str());
            assert!(known || list.lines().any(|line| line.ends_with(&format!("  {name}"))), "{name}");
        }
    }
}
