import type { Filter } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { segmentsQuery } from '../entity/schema.ts'
import { Checkbox, TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { messages } from './messages.ts'
import { lifetimesKey } from './queries.ts'

/**
 * A dialog for the people who are in none of the chosen segments. It creates a segment of them and an inactive rule.
 * The page of the rule previews the people who have been in the segment for long enough.
 */
export function UnusedForm({ onClose }: { onClose: () => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const navigate = useNavigateAfter()
  const { data: segments = [] } = useQuery(segmentsQuery)
  const { draft, change, field } = useDraft({ key: 'unused', used: [] as readonly string[], after_days: '1095' })
  const filter = unusedFilter(draft.used)
  const made = useRef('')
  const count = useQuery({
    queryKey: [...lifetimesKey, 'unused', draft.used],
    queryFn: async ({ signal }) => (await client.people.count(filter, { signal })).count,
    enabled: draft.used.length > 0,
  })
  const make = useWrite(
    async () => {
      const segment = { key: draft.key, filter }
      // A refused rule leaves its segment, and the next attempt reuses it.
      if (made.current !== JSON.stringify(segment)) await client.segments.create(segment)
      made.current = JSON.stringify(segment)
      return client.retentionRules.create({ segment: draft.key, after_days: Number(draft.after_days), action: 'erase' })
    },
    {
      refresh: [lifetimesKey, segmentsQuery.queryKey],
      onSuccess: ({ id }) => navigate({ to: '/lifetimes/$ruleId', params: { ruleId: String(id) } }),
    },
  )
  return (
    <FormDialog
      title={texts.unusedTitle}
      onSubmit={() => make.mutate()}
      write={make}
      submit={texts.unusedAction}
      isDisabled={draft.used.length === 0}
      onClose={onClose}
    >
      <p>{texts.unusedAdvice}</p>
      <fieldset>
        <legend>{texts.usedSegments}</legend>
        {segments.length === 0 && <p>{texts.noneAdvice}</p>}
        {segments.map(({ key, name }) => (
          <Checkbox
            key={key}
            isSelected={draft.used.includes(key)}
            onChange={isUsed =>
              change({ used: isUsed ? [...draft.used, key] : draft.used.filter(each => each !== key) })
            }
          >
            {name || key}
          </Checkbox>
        ))}
      </fieldset>
      {count.data !== undefined && <p role="status">{texts.unusedCount(count.data, formats.number(count.data))}</p>}
      <TextField
        label={texts.unusedDays}
        help={texts.afterDaysHelp}
        inputMode="numeric"
        isRequired
        {...field('after_days')}
      />
      <TextField label={texts.unusedKey} isRequired {...field('key')} onChange={key => change({ key: key.trim() })} />
    </FormDialog>
  )
}

/** The filter of the people who are in none of these segments. */
export const unusedFilter = (segments: readonly string[]): Filter =>
  ({ $and: segments.map(key => ({ $not: { $segment: key } })) }) as Filter
