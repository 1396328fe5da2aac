use pointsman_bench::*;
fn main() -> anyhow::Result<()> {
    let a: Vec<String> = std::env::args().collect();
    let options = Options {
        dir: "/tmp/benchdir".into(),
        events: 10000,
        seconds: a[2].parse()?,
        backlog: a[3].parse()?,
        queues: 10000,
        schedules: 1000,
        program: None,
        only: vec![a[1].parse()?],
    };
    for f in run(&options, &|_, _| {})?.figures {
        println!(
            "{:<70} {:>9.3} {:>9.3} {:>6.2}",
            f.name.chars().take(70).collect::<String>(),
            f.value,
            f.against.map(|a| a.1).unwrap_or(0.0),
            f.ratio.unwrap_or(0.0)
        );
    }
    Ok(())
}
