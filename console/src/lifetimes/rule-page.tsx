import type { RetentionRule } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, ConfirmDialog } from '../ui/dialog.tsx'
import { Loaded, UnreadPage } from '../ui/loaded.tsx'
import { EmptyState, Facts, Notice, Page, Problem, Section } from '../ui/page.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import { RuleState } from './lifetimes-page.tsx'
import { messages } from './messages.ts'
import { lifetimesKey, previewQuery, ruleQuery, rulesQuery, runsQuery } from './queries.ts'
import { RuleForm } from './rule-form.tsx'

/** The page of a retention rule: the people that it would erase or delete today, and its runs. */
export function RulePage() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { ruleId } = useParams({ strict: false }) as { ruleId: string }
  const query = useQuery(ruleQuery(Number(ruleId)))
  const { data: rule } = query
  if (!rule) return <UnreadPage title={texts.lifetimes} query={query} />
  const { paused, today } = rule
  return (
    <Page title={rule.key} subtitle={texts[rule.action]}>
      {paused && (
        <Notice kind="caution" title={texts.pausedTitle}>
          <p>{texts.reasons[paused.reason]}</p>
        </Notice>
      )}
      <RuleActions rule={rule} />
      <Facts
        facts={[
          [texts.state, <RuleState key="state" rule={rule} />],
          [texts.segment, rule.segment ?? texts.noSegment],
          [texts.afterDays, formats.number(rule.after_days)],
          [texts.dailyLimit, formats.number(rule.daily_limit)],
          [texts.today, texts.todayFacts(formats.number(today.told), formats.number(today.done))],
        ]}
      />
      <Preview id={rule.id} />
      <Runs id={rule.id} />
    </Page>
  )
}

function RuleActions({ rule }: { rule: RetentionRule }) {
  const { id, active } = rule
  const texts = useMessages(messages)
  const formats = useFormats()
  const navigate = useNavigateAfter()
  const [overlay, setOverlay] = useState<'on' | 'edit' | 'remove'>()
  const preview = useQuery(previewQuery(id))
  const close = () => setOverlay(undefined)
  const turn = useWrite(() => client.retentionRules.patch(id, { active: !active }), {
    refresh: [lifetimesKey],
    onSuccess: close,
  })
  const remove = useWrite(() => client.retentionRules.delete(id), {
    onSuccess: () => navigate({ to: '/lifetimes' }),
    refresh: [rulesQuery.queryKey],
  })
  const count = preview.data?.count ?? 0
  return (
    <>
      <Actions>
        {active ? (
          <Button onPress={() => turn.mutate()}>{texts.turnOff}</Button>
        ) : (
          <Button look="primary" onPress={() => setOverlay('on')} isDisabled={rule.segment === null}>
            {texts.turnOn}
          </Button>
        )}
        <Button look="danger" onPress={() => setOverlay('remove')}>
          {texts.remove}
        </Button>
        <Button onPress={() => setOverlay('edit')}>{texts.edit}</Button>
      </Actions>
      {!overlay && turn.error && <Problem error={turn.error} />}
      {overlay === 'on' && (
        <ConfirmDialog title={texts.turnOnTitle} action={texts.turnOn} write={turn} onClose={close}>
          <p>{texts.turnOnAdvice(count, formats.number(count))}</p>
        </ConfirmDialog>
      )}
      {overlay === 'edit' && <RuleForm rule={rule} onClose={close} />}
      {overlay === 'remove' && (
        <ConfirmDialog title={texts.removeTitle} action={texts.removeAction} write={remove} onClose={close}>
          <p>{texts.removeAdvice}</p>
        </ConfirmDialog>
      )}
    </>
  )
}

function Preview({ id }: { id: number }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const preview = useQuery(previewQuery(id))
  return (
    <Section title={texts.preview}>
      <Loaded query={preview}>
        {({ items, count, held, would_pause }) => (
          <>
            {would_pause && <Notice kind="caution" title={texts.wouldPause} />}
            {count > 0 && <p>{texts.previewCount(count, formats.number(count))}</p>}
            {count === 0 && <EmptyState title={texts.previewNone} />}
            {held > 0 && <p>{texts.previewHeld(held, formats.number(held))}</p>}
            {items.length > 0 && (
              <Table label={texts.preview} headers={[texts.person, texts.since, texts.takenFrom]}>
                {items.map(({ id, external_id, entered_at, announced_for }) => (
                  <tr key={id}>
                    <th scope="row">
                      <EntityLink owner="people" id={id} externalId={external_id} />
                    </th>
                    <td>{formats.exactTime(entered_at)}</td>
                    <td>{announced_for === null ? texts.notTold : formats.exactTime(announced_for)}</td>
                  </tr>
                ))}
              </Table>
            )}
          </>
        )}
      </Loaded>
    </Section>
  )
}

function Runs({ id }: { id: number }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const runs = useQuery(runsQuery(id))
  return (
    <Section title={texts.history}>
      <Loaded query={runs} none={<EmptyState title={texts.historyNone} />}>
        {runs => (
          <Table label={texts.history} headers={[texts.day, numberHeader(texts.told), numberHeader(texts.done)]}>
            {runs.map(({ day, told, done }) => (
              <tr key={day}>
                <th scope="row">{day}</th>
                <td className={numberCell}>{formats.number(told)}</td>
                <td className={numberCell}>{formats.number(done)}</td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </Section>
  )
}
