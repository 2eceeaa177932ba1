import { formatTimes, type QuestionsContext, type Times, timeEach } from './questions-part.ts'

const clients = 16
const patchesPerRound = 2_000
const rounds = 3

const filters: Record<string, object> = {
  high: { 'attribute_values.score': { $gte: 500_000 } },
  capital: { 'attribute_values.country': 'country 1', 'attribute_values.city': { $in: ['city 1', 'city 2'] } },
  readers: { consents: { $some: { consent_type_id: 1, channel: 'email', state: true } }, email: { $exists: true } },
  employed: { 'attribute_values.employer': { $some: { external_id: { $starts_with: 'c1' } } } },
  both: { $and: [{ $segment: 'high' }, { $not: { $segment: 'readers' } }] },
}
const keys = Object.keys(filters)

/** Measures how long the people of five segments take to compute, and what the segments cost concurrent PATCHes. */
export async function measure(context: QuestionsContext): Promise<void> {
  const { ask, print, people } = context
  const plain: number[] = []
  const beside: number[] = []
  await patchAll(context)
  for (let round = 0; round < rounds; round += 1) {
    plain.push(await patchAll(context))
    const began = performance.now()
    for (const key of keys) await ask('POST', '/v1/segments', { key, filter: filters[key] })
    const query = keys.map(key => `segment=${key}`).join('&')
    const start = await headOf(context, query)
    const seconds = (performance.now() - began) / 1_000
    print(`  five segments of ${people.toLocaleString('en')} people were computed in ${seconds.toFixed(1)} s`)
    beside.push(await patchAll(context))
    const ended = performance.now()
    const last = await newest(context)
    while ((await headOf(context, query)) < last);
    print(`  the feed had the ${last - start} changes ${((performance.now() - ended) / 1_000).toFixed(2)} s after them`)
    if (round === 0) {
      print(`  a page of the people of a segment: ${formatTimes(await timePeople(context))}`)
      print(
        `  a count of them: ${formatTimes(await timeEach(10, () => ask('GET', '/v1/segments/high/people?size=1&count=true')))}`,
      )
    }
    for (const key of keys.toReversed()) await ask('DELETE', `/v1/segments/${key}`)
  }
  const share = median(beside) / median(plain)
  print(
    `  PATCH by ${clients} clients: ${median(plain).toFixed(0)}/s alone, ${median(beside).toFixed(0)}/s beside five segments ` +
      `(${share.toFixed(2)}); the follower works behind the writes, on the same processors`,
  )
}

const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

const timePeople = ({ ask, requests }: QuestionsContext): Promise<Times> =>
  timeEach(requests, () => ask('GET', '/v1/segments/high/people?size=50'))

/** How far the feed of the segments is. Waits until their people are computed. */
const headOf = async ({ ask }: QuestionsContext, query: string): Promise<number> =>
  ((await ask('GET', `/v1/changes?${query}&limit=1`)) as { head: number }).head

const newest = async ({ ask }: QuestionsContext): Promise<number> =>
  ((await ask('GET', '/v1/changes?subject=person&limit=1')) as { head: number }).head

/** Patches random people from several clients at once. Returns PATCHes per second. */
async function patchAll({ ask, people }: QuestionsContext): Promise<number> {
  let left = patchesPerRound
  const began = performance.now()
  const client = async () => {
    while (left > 0) {
      left -= 1
      const number = 1 + Math.floor(Math.random() * people)
      const score = Math.floor(Math.random() * 1_000_000)
      await ask('PATCH', `/v1/people/p${number}`, { attribute_values: { score } })
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return patchesPerRound / ((performance.now() - began) / 1_000)
}
