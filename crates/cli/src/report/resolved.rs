//! What a run was told, with every default spelled out.

use serde_json::{Value, json};
use sim::{First, GcMode, HostMode, OwnWrites, PreconditionMode, RunSpec, TimingMode};

/// All settings of a run. `workload` is the description of its source, `trace` the hash of the
/// requests of a recorded trace.
pub fn settings(spec: &RunSpec, workload: &str, trace: Option<&str>) -> Value {
    json!({
        "ftl": spec.ftl,
        "workload": spec.workload.name,
        "workload_in_full": workload,
        "trace_hash": trace,
        "seed": spec.seed,
        "writes": spec.writes,
        "requests": spec.requests,
        "write_buffer": write_buffer(spec),
        "verify": spec.verify,
        "device": device(spec),
        "config": config(spec),
        "precondition": precondition(spec),
        "timing": timing(spec),
    })
}

fn device(spec: &RunSpec) -> Value {
    let (plan, geometry) = (&spec.device, &spec.device.geometry);
    let logical = u64::from(plan.logical_pages) * u64::from(geometry.page_bytes());
    json!({
        "name": plan.name,
        "geometry": geometry.dimensions(),
        "capabilities": plan.capabilities,
        "times": plan.timing,
        "limits": plan.limits,
        "raw_bytes": geometry.raw_bytes(),
        "logical_pages": plan.logical_pages,
        "logical_share": logical as f64 / geometry.raw_bytes() as f64,
    })
}

fn config(spec: &RunSpec) -> Value {
    let config = &spec.config;
    let (gecko, janus) = (config.gecko(), &config.janus);
    json!({
        "cache_entries": config.cache_entries,
        "protected_percent": config.protected_percent,
        "cache_ways": config.cache_ways,
        "victim": config.victim,
        "placement": config.placement,
        "age_groups": config.age_groups,
        "lanes": config.lanes,
        "validity": config.validity,
        "gecko": {
            "size_ratio": gecko.size_ratio,
            "partitions": gecko.partitions,
            "multi_way": gecko.multi_way,
            "buffer_pages": gecko.buffer_pages,
            "packed": gecko.packed,
            "filter_bytes": gecko.filter_bytes,
            "spread_ops": gecko.spread_ops,
        },
        "janus": {
            "utilisation_percent": janus.utilisation_percent,
            "defuse_among": janus.defuse_among,
            "learn_utilisation": janus.learn_utilisation,
            "page_map_percent": janus.page_map_percent,
        },
        "groups": config.groups.map(|groups| json!({"blocks": groups.blocks, "extra": groups.extra})),
        "maps": if config.maps == ftl::config::Maps::InFlash { "flash" } else { "nonvolatile" },
        "wear": config.wear.map(|wear| json!({"spread": wear.spread, "scans": wear.scans})),
        "battery": config.battery,
        "warm": config.warm,
    })
}

fn write_buffer(spec: &RunSpec) -> Value {
    let Some(buffer) = spec.write_buffer else { return Value::Null };
    let bytes = u64::from(buffer.pages) * u64::from(spec.device.geometry.page_bytes());
    json!({"pages": buffer.pages, "bytes": bytes, "policy": buffer.policy.name()})
}

fn precondition(spec: &RunSpec) -> Value {
    match &spec.precondition {
        PreconditionMode::Off => json!({"kind": "off"}),
        PreconditionMode::Fill(share) => json!({"kind": "fill", "share": share}),
        PreconditionMode::Steady(options) => json!({
            "kind": "steady",
            "writes": if options.writes == OwnWrites::Workload { "workload" } else { "uniform" },
            "first": if options.first == First::Aged { "aged" } else { "fill" },
            "window": options.window,
            "agree": options.agree,
            "tolerance": options.tolerance,
            "max_windows": options.max_windows,
        }),
    }
}

fn timing(spec: &RunSpec) -> Value {
    let TimingMode::Queued(queues) = &spec.timing else { return json!({"kind": "none"}) };
    let host = match queues.host {
        HostMode::Open { time_scale, outstanding } => {
            json!({"kind": "open", "time_scale": time_scale, "outstanding": outstanding})
        }
        HostMode::Poisson { per_s, outstanding } => {
            json!({"kind": "poisson", "per_s": per_s, "outstanding": outstanding})
        }
        HostMode::Closed { queue_depth, think_ns } => {
            json!({"kind": "closed", "queue_depth": queue_depth, "think_ns": think_ns})
        }
    };
    let mut timing = json!({
        "kind": "queued",
        "host": host,
        "gc": queues.gc.name(),
        "read_priority": queues.read_priority,
        "max_overtakes": queues.max_overtakes,
        "suspend_ns": queues.suspend_ns,
        "controller_ns": queues.controller_ns,
        "ftl_page_ns": queues.ftl_page_ns,
        "collection_takes_time": queues.collection_takes_time,
        "warm_up_requests": queues.warm_up_requests,
    });
    if let GcMode::ByBank { collectors, .. } = queues.gc {
        timing["collectors"] = json!(collectors);
    }
    timing
}
