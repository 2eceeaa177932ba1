import { median } from '../measure.ts'
import { alternate, type QuestionsContext } from './questions-part.ts'

const minSpeed = 1.5

/** Compares pages with the fields of which a table has columns with whole pages, by HTTP. */
export async function measure({ ask, print, requests }: QuestionsContext): Promise<void> {
  const list = (body: object) => () => ask('POST', '/v1/people/list', body)
  const byCountry = { filter: { 'attribute_values.country': 'country 1' } }
  const filter = (body: object) => () => ask('POST', '/v1/people/filter', { ...byCountry, ...body })
  for (const size of [50, 500])
    for (const [what, read, fields] of [
      ['two columns of a list', list, ['external_id', 'email']],
      ['a column and a key of a list', list, ['external_id', 'attribute_values.city']],
      ['a relationship of a list', list, ['external_id', 'attribute_values.employer']],
      ['two columns of a filter', filter, ['external_id', 'email']],
    ] as const) {
      const page = { cursor_configuration: { size } }
      const [whole, selected] = await alternate(requests, [read(page), read({ ...page, fields })])
      const speed = median(whole!) / median(selected!)
      const isMet = speed >= minSpeed ? 'met' : 'NOT MET'
      print(
        `  ${what}, ${size} people: whole p50 ${median(whole!).toFixed(2)} ms, two fields ${median(selected!).toFixed(2)} ms, ` +
          `${speed.toFixed(2)} times as fast (at least ${minSpeed}): ${isMet}`,
      )
    }
}
