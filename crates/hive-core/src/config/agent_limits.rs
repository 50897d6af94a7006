//! `[agents.limits]`: how much one agent may use, unless its own configuration says otherwise.

use hive_runtime::Limits;
use serde::Deserialize;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// How much an agent may use; what is not given has no limit, or the hive's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// Memory of all of its processes together, in mebibytes.
    pub memory_mib: Option<u64>,
    /// Processes and threads together.
    pub pids: Option<u32>,
    /// Processor time, in hundredths of one processor.
    pub cpu_percent: Option<u32>,
    /// Files in `/tmp`, in mebibytes.
    pub tmp_mib: Option<u64>,
    /// The largest single file, in mebibytes.
    pub file_mib: Option<u64>,
    /// How much of its harness's output is kept, in kibibytes.
    pub output_kib: Option<u64>,
}

impl AgentLimits {
    /// The same for a runtime.
    pub fn to_runtime(self) -> Limits {
        let default = Limits::default();
        Limits {
            output_bytes: self
                .output_kib
                .map_or(default.output_bytes, |kib| kib * KIB),
            memory_bytes: self
                .memory_mib
                .map(|mib| mib * MIB)
                .or(default.memory_bytes),
            pids: self.pids.or(default.pids),
            cpu_percent: self.cpu_percent.or(default.cpu_percent),
            tmp_bytes: self.tmp_mib.map_or(default.tmp_bytes, |mib| mib * MIB),
            file_bytes: self.file_mib.map(|mib| mib * MIB).or(default.file_bytes),
        }
    }

    /// Refuses limits under which nothing works, or that no machine has.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        // An engine alone is some dozen threads and some hundred mebibytes.
        for (key, limit, least) in [
            ("memory_mib", self.memory_mib, 64),
            ("pids", self.pids.map(u64::from), 64),
            ("cpu_percent", self.cpu_percent.map(u64::from), 1),
            ("tmp_mib", self.tmp_mib, 1),
            ("file_mib", self.file_mib, 1),
            ("output_kib", self.output_kib, 16),
        ] {
            let is_sound = limit.is_none_or(|limit| (least..1 << 40).contains(&limit));
            anyhow::ensure!(is_sound, "limits.{key} of an agent is at least {least}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_has_the_default() {
        let parse = |text: &str| toml::from_str::<AgentLimits>(text).unwrap();
        assert_eq!(parse("").to_runtime(), Limits::default());
        let limits = parse("memory_mib = 512\npids = 100\ncpu_percent = 50\ntmp_mib = 2");
        limits.check().unwrap();
        assert_eq!(
            limits.to_runtime(),
            Limits {
                memory_bytes: Some(512 << 20),
                pids: Some(100),
                cpu_percent: Some(50),
                tmp_bytes: 2 << 20,
                ..Limits::default()
            }
        );
        for bad in [
            "memory_mib = 1",
            "pids = 8",
            "cpu_percent = 0",
            "tmp_mib = 0",
        ] {
            let error = parse(bad).check().unwrap_err().to_string();
            assert!(error.contains(bad.split(' ').next().unwrap()), "{error}");
        }
    }
}
