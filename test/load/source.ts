import { fork } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { generate } from './generator.ts'
import type { Figures, Load } from './load.ts'

/** Sends a load from a process of its own, so that what is measured here does not wait for what is sent there. */
export async function offer(load: Load): Promise<Figures> {
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
    if (load.ahead) goAhead()
    const figures = await generate(load)
    process.send?.(figures, () => process.disconnect())
  })

/** Only root may: else it waits for a core like everybody, and the figures say so. */
function goAhead() {
  try {
    setPriority(constants.priority.PRIORITY_HIGHEST)
  } catch {
    process.stderr.write(
      'The neighbour has no core of its own, nor the right to go first: its figures hold waits of this machine.\n',
    )
  }
}
