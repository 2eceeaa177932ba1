-- Creates people with two attribute values of their own. The environment sets TOKEN, SUFFIX, which ends the keys of both attributes,
-- and RUN, which makes the values unique to the run.
local suffix, run = os.getenv("SUFFIX"), os.getenv("RUN")
local headers = { ["Authorization"] = "Bearer " .. os.getenv("TOKEN"), ["Content-Type"] = "application/json" }
local format = string.format
local made = 0

request = function()
  made = made + 1
  local body = format('{"external_id":"u%s-%d","first_name":"First","last_name":"Last","language":"en","attribute_values":{"code_%s":"%s-%d","badge_%s":"%s/%d"}}',
    run, made, suffix, run, made, suffix, run, made)
  return wrk.format("POST", "/v1/people", headers, body)
end

-- Writes the last line of wrk's output as JSON: times in microseconds, and counts.
function done(summary, latency)
  local errors = summary.errors
  io.write(format('{"requests":%d,"duration":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
