/**
 * Preloaded into a process of kith: measures its longest event-loop turn, in milliseconds of the processor, so that other processes of
 * the machine do not count. SIGWINCH prints the longest one since the last, as `longest turn: 12.3`.
 */
const cpuMs = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

let longestMs = 0
let beforeMs = cpuMs()
// Between two calls, an idle loop takes no time of the processor, and a busy one at most a turn and the millisecond before it.
setInterval(() => {
  const nowMs = cpuMs()
  longestMs = Math.max(longestMs, nowMs - beforeMs)
  beforeMs = nowMs
}, 1).unref()
process.on('SIGWINCH', () => {
  process.stderr.write(`longest turn: ${longestMs.toFixed(1)}\n`)
  longestMs = 0
})
