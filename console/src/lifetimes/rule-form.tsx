import type { RetentionRule, RetentionRuleBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { client, useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { changedMembers } from '../entity/equal.ts'
import { segmentsQuery } from '../entity/schema.ts'
import { TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import { lifetimesKey } from './queries.ts'

/** A dialog that creates an inactive rule, or changes a rule. */
export function RuleForm({ rule, onClose }: { rule: RetentionRule | null; onClose: () => void }) {
  const texts = useMessages(messages)
  const { data: segments = [] } = useQuery(segmentsQuery)
  const write = useWrite(
    (body: RetentionRuleBody) =>
      rule ? client.retentionRules.patch(rule.id, changedMembers(body, rule)) : client.retentionRules.create(body),
    { refresh: [lifetimesKey], onSuccess: onClose },
  )
  const { draft, field } = useDraft({
    segment: rule?.segment ?? null,
    after_days: String(rule?.after_days ?? 1_095),
    action: rule?.action ?? 'erase',
    daily_limit: String(rule?.daily_limit ?? 1_000),
  })
  const body = {
    ...draft,
    segment: draft.segment ?? '',
    after_days: Number(draft.after_days),
    daily_limit: Number(draft.daily_limit),
  }
  return (
    <FormDialog
      title={rule?.key ?? texts.create}
      onSubmit={() => write.mutate(body)}
      write={write}
      submit={rule ? texts.save : texts.createAction}
      isDisabled={draft.segment === null}
      onClose={onClose}
    >
      <Select
        label={texts.segment}
        options={segments.map(({ key, name }) => ({ value: key, label: name }))}
        {...field('segment')}
      />
      <TextField
        label={texts.afterDays}
        help={texts.afterDaysHelp}
        inputMode="numeric"
        isRequired
        {...field('after_days')}
      />
      <Select label={texts.action} options={{ erase: texts.erase, delete: texts.delete }} {...field('action')} />
      <TextField label={texts.dailyLimit} inputMode="numeric" isRequired {...field('daily_limit')} />
    </FormDialog>
  )
}
