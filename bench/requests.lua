-- Sends the requests of a file, one after the other, each once. A request is its length in bytes, a line feed, and its text.
local file = io.open(os.getenv("REQUESTS"), "rb")

request = function()
  local length = file:read("*n")
  if not length then error("The file has too few requests for this load.") end
  file:read(1)
  return file:read(length)
end

-- Writes the last line of wrk's output as JSON: times in microseconds, and counts.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests":%d,"duration":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
