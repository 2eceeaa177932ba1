import { formatTimes, type QuestionsContext, timeEach } from './questions-part.ts'

/** Measures counts by HTTP. They have no bound but the time of a request. */
export async function measure({ ask, print, requests }: QuestionsContext): Promise<void> {
  const counted = { count: true, cursor_configuration: { size: 1 } }
  for (const [what, path, body] of [
    ['all people', '/v1/people/list', {}],
    ['about 7,000 of an indexed city', '/v1/people/filter', { filter: { 'attribute_values.city': 'city 100' } }],
    [
      'all of the first country, by its index',
      '/v1/people/filter',
      { filter: { 'attribute_values.country': 'country 0' } },
    ],
    ['a condition without an index', '/v1/people/filter', { filter: { 'attribute_values.amount': { $gt: 500 } } }],
    ['the people of a company', '/v1/stacks/companies/c7/related', { target: 'people' }],
  ] as const) {
    const count = () => ask('POST', path, { ...body, ...counted })
    const { count: found } = (await count()) as { count: number }
    print(`  ${what}, ${found.toLocaleString('en')}: ${formatTimes(await timeEach(Math.min(requests, 10), count))}`)
  }
}
