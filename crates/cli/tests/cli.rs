//! What the command line says: help, wrong usage, and errors without a server. `TRYCMD=overwrite` renews the
//! expected texts; read what changed before you commit it.

#[test]
fn the_command_line_reads_as_documented() {
    trycmd::TestCases::new()
        // Nobody listens there, and whoever runs the tests may have a server of their own in their environment.
        .env("POINTSMAN_URL", "http://127.0.0.1:1")
        .env("POINTSMAN_TOKEN", "")
        .env("POINTSMAN_TOKEN_FILE", "")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cmd/*.md");
}
