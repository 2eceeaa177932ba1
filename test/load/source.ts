import { fork } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { generate } from './generator.ts'
import type { Figures, Load } from './load.ts'

/** Sends a load from a child process, so that concurrent loads do not delay each other's measurements. */
export async function runLoad(load: Load): Promise<Figures> {
  const child = fork(fileURLToPath(import.meta.url), { execArgv: ['--max-semi-space-size=16'] })
  child.send(load)
  const outcome = await Promise.race([
    once(child, 'message').then(([figures]) => figures as Figures),
    once(child, 'exit').then(([code]) => `the generator ended with ${code}`),
  ])
  if (typeof outcome === 'string') throw new Error(outcome)
  return outcome
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.once('message', async (load: Load) => {
    if (load.isPrioritized) raisePriority()
    const figures = await generate(load)
    process.send?.(figures, () => process.disconnect())
  })

/** Raises the priority of this process. Needs root. Without it a warning is printed. */
function raisePriority() {
  try {
    setPriority(constants.priority.PRIORITY_HIGHEST)
  } catch {
    process.stderr.write(
      'The generator cannot raise its priority (not root): its latencies include waits for a CPU core.\n',
    )
  }
}
