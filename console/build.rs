//! Rebuilds a release when a file is added to the console. Changed files are detected without this; a debug build reads
//! the files from disk.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for path in ["index.html", "main.js", "data", "parts", "screens", "shell", "styles", "vendor"] {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
