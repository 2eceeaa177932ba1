-- Sends one kind of request: METHOD, TARGET, BODY and HEADERS (one per line). @person becomes a random number up to
-- PEOPLE, and @word a random number. Every response has to contain EXPECTED, since GraphQL returns errors with 200.
local env = os.getenv
local method, target, body, people, expected = env("METHOD"), env("TARGET"), env("BODY"), tonumber(env("PEOPLE")), env("EXPECTED")
local random = math.random
local headers, threads = {}, {}
for name, value in env("HEADERS"):gmatch("([^\n:]+): ([^\n]+)") do headers[name] = value end
unexpected = 0

local choices = {
  person = function() return tostring(random(1, people)) end,
  word = function() return tostring(random(1, 1000000000)) end,
}
local function fill(text)
  return (text:gsub("@(%a+)", function(name) return choices[name]() end))
end

function setup(thread) threads[#threads + 1] = thread end
function init() math.randomseed(os.time() + tonumber(tostring({}):sub(8), 16) % 1000000) end
function request() return wrk.format(method, fill(target), headers, body ~= "" and fill(body) or nil) end
function response(status, _, answer)
  -- wrk itself counts statuses of 400 and more.
  if status < 400 and (status >= 300 or not answer:find(expected, 1, true)) then unexpected = unexpected + 1 end
end

-- Writes the same line as ../lua/requests.lua.
function done(summary, latency)
  local errors, refused = summary.errors, summary.errors.status
  for _, thread in ipairs(threads) do refused = refused + thread:get("unexpected") end
  io.write(string.format('{"requests":%d,"duration":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), refused,
    errors.connect + errors.read + errors.write + errors.timeout))
end
