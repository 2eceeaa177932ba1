-- Sends one kind of request. The environment sets KIND, TOKEN, PEOPLE, CONSENT_TYPES (two identifiers), and RUN, which
-- makes the names of new people unique to the run.
local kind, people, run = os.getenv("KIND"), tonumber(os.getenv("PEOPLE")), os.getenv("RUN")
local languages = {"en", "it", "de", "fr"}
local one, other = (os.getenv("CONSENT_TYPES") or ""):match("^(%d+),(%d+)$")
local headers = { ["Authorization"] = "Bearer " .. os.getenv("TOKEN"), ["Content-Type"] = "application/json" }
local random, format = math.random, string.format
local made = 0

local function word() return random(1, 1000000000) end
local function person() return "/v1/people/p" .. random(1, people) end

local requests = {
  get = function() return wrk.format("GET", person(), headers) end,
  patch = function()
    local body = format('{"first_name":"F%d","last_name":"L%d","language":"%s","attribute_values":{"city":"c%d","score":%d}}',
      word(), word(), languages[random(4)], word(), word())
    return wrk.format("PATCH", person(), headers, body)
  end,
  post = function()
    made = made + 1
    local body = format('{"external_id":"n%s-%d","first_name":"First","last_name":"Last","email":"n%d@example.org","language":"en","attribute_values":{"city":"c%d","score":%d}}',
      run, made, made, word(), word())
    return wrk.format("POST", "/v1/people", headers, body)
  end,
  list = function()
    local after = format("01900000-0000-7000-8000-%012x", random(1, people - 100))
    return wrk.format("POST", "/v1/people/list", headers,
      format('{"sorting_type":"asc","cursor_configuration":{"size":50,"after_id":"%s"}}', after))
  end,
  links = function()
    local body = format('{"attribute_values":{"referrer":"p%d"},"consents":[{"consent_type_id":%s,"channel":"email","state":%s},{"consent_type_id":%s,"channel":"sms","state":%s}]}',
      random(1, people), one, tostring(random(2) == 1), other, tostring(random(2) == 1))
    return wrk.format("PATCH", person(), headers, body)
  end,
}

function init() math.randomseed(os.time() + tonumber(tostring({}):sub(8), 16) % 1000000) end

request = requests[kind]

-- Writes the last line of wrk's output as JSON: times in microseconds, and counts.
function done(summary, latency)
  local errors = summary.errors
  io.write(format('{"requests":%d,"duration":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
