import type { Definitions } from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { ownerName } from '../entity/address.ts'
import { scopesOf } from '../entity/entities.ts'
import { ownersOf } from '../entity/schema.ts'
import { ComboBox } from '../ui/combo-box.tsx'
import { FieldGroup } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import { isGroupable, isMeasured, isTime, type Report, type ReportField } from './report.ts'
import type { MeasureOperation, Order, ReportSearch } from './search.ts'

type ControlProps = {
  report: Report
  fields: readonly ReportField[]
  change(changed: Partial<Record<keyof ReportSearch, unknown>>): void
}

/** The choices of a report. Each choice is named after its member of the request, so that a refusal finds it. */
export function ReportControls({ definitions, ...props }: ControlProps & { definitions: Definitions }) {
  const texts = useMessages(messages)
  const { scopes } = useSession()
  const { report, change } = props
  const owners = ownersOf(definitions).filter(owner => scopes.includes(scopesOf(owner).read))
  return (
    <FieldGroup look="grid" aria-label={texts.controls}>
      <Select
        label={texts.owner}
        options={owners.map(owner => ({ value: owner, label: ownerName(owner, definitions, texts.people) }))}
        value={report.owner}
        // Another owner has other fields.
        onChange={owner => change({ ...empty, owner })}
      />
      <MeasureControls {...props} />
      <GroupControls {...props} index={0} />
      {report.groups.length > 0 && <GroupControls {...props} index={1} />}
      {report.groups.length > 0 && <OrderControls {...props} />}
    </FieldGroup>
  )
}

const empty = {
  ...{ group: undefined, by: undefined, group2: undefined, by2: undefined },
  ...{ measure: undefined, of: undefined, p: undefined, filter: undefined, sort: undefined, limit: undefined },
}

/** The value for no group. A list cannot have an empty value, and no field has this name. */
const none = 'none'

function GroupControls({ report, fields, change, index }: ControlProps & { index: 0 | 1 }) {
  const texts = useMessages(messages)
  const group = report.groups[index]
  const other = report.groups[1 - index]
  const [name, by] = index === 0 ? (['group', 'by'] as const) : (['group2', 'by2'] as const)
  const choose = (chosen: string) => {
    if (chosen !== none) return change({ [name]: chosen, [by]: undefined, ...(index === 0 && { sort: undefined }) })
    // The second group replaces the first one.
    const second = report.groups[1]
    if (index === 1) return change({ group2: undefined, by2: undefined })
    change({ group: second?.field.name, by: second?.by, group2: undefined, by2: undefined, sort: undefined })
  }
  return (
    <>
      <ComboBox
        name={`/group_by/${index}`}
        label={index === 0 ? texts.group : texts.secondGroup}
        isLabelShown
        placeholder={texts.noGroup}
        choices={[
          { name: none, label: texts.noGroup },
          // The same time can be chosen twice, such as by year and by month.
          ...fields.filter(field => isGroupable(field) && (isTime(field) || field.name !== other?.field.name)),
        ]}
        value={group?.field.name ?? none}
        onChange={choose}
      />
      {group?.by !== undefined && (
        <Select
          label={`${texts.span}: ${group.field.label}`}
          options={texts.spans}
          value={group.by}
          onChange={unit => change({ [by]: unit })}
          name={`/group_by/${index}/by`}
        />
      )}
    </>
  )
}

const percentiles = [5, 10, 25, 75, 90, 95, 99]

function MeasureControls({ report: { measure, of, percentile }, fields, change }: ControlProps) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  const choose = (operation: MeasureOperation) => {
    const measurable = fields.filter(field => isMeasured(operation, field))
    const kept = measurable.find(({ name }) => name === of?.name)
    const only = measurable.length === 1 && operation !== 'count_distinct' ? measurable[0] : undefined
    change({ measure: operation, of: operation === 'count' ? undefined : (kept ?? only)?.name, p: undefined })
  }
  return (
    <>
      <Select<MeasureOperation>
        label={texts.measure}
        options={texts.measures}
        value={measure}
        onChange={choose}
        name="/measures/0/op"
      />
      {measure !== 'count' && (
        <ComboBox
          name="/measures/0/field"
          label={texts.measured}
          isLabelShown
          placeholder={texts.chooseField}
          choices={fields.filter(field => isMeasured(measure, field))}
          value={of?.name ?? ''}
          onChange={name => change({ of: name })}
        />
      )}
      {measure === 'percentile' && (
        <Select
          label={texts.percentile}
          options={withValue(percentiles, percentile).map(each => ({
            value: String(each),
            label: `${number(each)} %`,
          }))}
          value={String(percentile)}
          onChange={p => change({ p })}
          name="/measures/0/p"
        />
      )}
    </>
  )
}

const limits = [10, 25, 100, 1_000, 10_000]

function OrderControls({ report: { order, limit }, change }: ControlProps) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  return (
    <>
      <Select<Order>
        label={texts.order}
        options={texts.orders}
        value={order}
        onChange={sort => change({ sort })}
        name="/sort"
      />
      <Select
        label={texts.limit}
        options={withValue(limits, limit).map(each => ({ value: String(each), label: texts.limitOf(number(each)) }))}
        value={String(limit)}
        onChange={chosen => change({ limit: chosen })}
        name="/limit"
      />
    </>
  )
}

/** The values of a list, including the value of the address. */
const withValue = (values: readonly number[], value: number) =>
  [...new Set([...values, value])].sort((one, other) => one - other)
