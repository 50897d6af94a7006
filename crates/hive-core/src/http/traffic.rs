//! Requests of the dashboard's port, counted by route, for [`super::metrics`].

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};

use super::{Site, metrics::Page};

/// Bounds of the histogram of times, in seconds.
const BOUNDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0];

/// What was asked of a port.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// By method, route and status. Routes are those of the table, so that they are few.
    counts: Mutex<BTreeMap<(&'static str, String, u16), Times>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Times {
    count: u32,
    seconds: f64,
    within: [u32; BOUNDS.len()],
}

impl Traffic {
    fn count(&self, method: &'static str, route: String, status: u16, seconds: f64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let times = counts.entry((method, route, status)).or_default();
        times.count += 1;
        times.seconds += seconds;
        for (bound, within) in BOUNDS.iter().zip(&mut times.within) {
            *within += u32::from(seconds <= *bound);
        }
    }

    /// The counts as text.
    pub(super) fn render(&self) -> String {
        let counts = self
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut page = Page::default();
        page.family(
            "http_requests",
            "counter",
            "Requests of the dashboard's port",
        );
        for ((method, route, status), times) in &counts {
            let labels = [
                ("method", *method),
                ("route", route),
                ("status", &status.to_string()),
            ];
            page.line("http_requests_total", &labels, times.count.into());
        }
        let mut routes: BTreeMap<&str, Times> = BTreeMap::new();
        for ((_, route, _), times) in &counts {
            let sum = routes.entry(route).or_default();
            sum.count += times.count;
            sum.seconds += times.seconds;
            for (sum, within) in sum.within.iter_mut().zip(times.within) {
                *sum += within;
            }
        }
        let name = "http_request_duration_seconds";
        page.family(name, "histogram", "Time until an answer began");
        for (route, times) in routes {
            for (bound, within) in BOUNDS.iter().zip(times.within) {
                let labels = [("route", route), ("le", &bound.to_string())];
                page.line(&format!("{name}_bucket"), &labels, within.into());
            }
            let all = [("route", route), ("le", "+Inf")];
            page.line(&format!("{name}_bucket"), &all, times.count.into());
            page.line(
                &format!("{name}_count"),
                &[("route", route)],
                times.count.into(),
            );
            page.line(&format!("{name}_sum"), &[("route", route)], times.seconds);
        }
        page.text
    }
}

/// Counts a request that was let in.
pub(super) async fn count(State(site): State<Site>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| "none".to_owned(), |route| route.as_str().to_owned());
    let method = match request.method().as_str() {
        "GET" => "GET",
        "POST" => "POST",
        _ => "other",
    };
    let began = Instant::now();
    let response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), began.elapsed().as_secs_f64());
    site.traffic.count(method, route, status, took);
    response
}
