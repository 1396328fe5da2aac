//! A file that is new in the console is part of the next release build. Files that changed are seen without this; a
//! debug build reads them from disk, and need not be made anew for them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for part in ["index.html", "main.js", "data", "parts", "screens", "shell", "styles", "vendor"] {
            println!("cargo::rerun-if-changed=../../console/{part}");
        }
    }
}
