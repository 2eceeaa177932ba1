import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isWhole } from '../../support/runs.ts'
import { useOwnService } from '../../support/service.ts'
import { fuzzSeed } from '../seed.ts'
import { createSender, type Sender } from '../sender.ts'
import { command } from './commands.ts'
import { compareFinalState, createTenant, replay } from './replay.ts'
import { copyTemplate, makeTemplate } from './tenants.ts'

const workerCount = 8
const sequencesPerWorker = isWhole ? 130 : 26

const service = useOwnService()
let sender: Sender
let templateId: number
beforeAll(async () => {
  sender = createSender(service)
  templateId = await makeTemplate(service)
})
afterAll(async () => {
  sender.close()
})

it('matches the model of the specification after every sequence of requests of two organizations', {
  timeout: 300_000,
}, async () => {
  const seed = fuzzSeed()
  let sequences = 0
  let commands = 0
  const sequence = fc.array(command, { minLength: 1, maxLength: 30, size: 'max' })
  const workers = Array.from({ length: workerCount }, (_, worker) =>
    fc.assert(
      fc.asyncProperty(sequence, async steps => {
        const organizations = [await copyTemplate(service, templateId), await copyTemplate(service, templateId)]
        const tenants = organizations.map(one => createTenant(service, sender, one))
        for (const step of steps) await replay(tenants[step.organization]!, step)
        for (const tenant of tenants) await compareFinalState(tenant)
        sequences += 1
        commands += steps.length
      }),
      { seed: seed + worker, numRuns: sequencesPerWorker },
    ),
  )
  const results = await Promise.allSettled(workers)
  console.log(`sequences: ${sequences} of ${commands} requests by two organizations, KITH_FUZZ_SEED=${seed}`)
  for (const result of results) if (result.status === 'rejected') throw result.reason
  expect(sequences).toBe(workerCount * sequencesPerWorker)
})
