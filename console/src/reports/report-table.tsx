import { useMessages } from '../app/language.tsx'
import { Targets } from '../entity/targets.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { type Group, isNumeric, type Result, type TargetLabels } from './report.ts'
import { useReportTexts } from './report-texts.ts'

/** The groups of a report with their results. */
export function ReportTable({ report, aggregate, labels }: Result) {
  const texts = useMessages(messages)
  const { valueText, measureText } = useReportTexts()
  const isNumber = isNumeric(report)
  const measure = measureText(report)
  const groups = report.groups.map(({ field }) => field.label)
  const headers = [...(groups.length > 0 ? groups : [texts.group]), isNumber ? numberHeader(measure) : measure]
  return (
    <Table label={texts.table} headers={headers}>
      {aggregate.groups.map(({ by, measures: [value] }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows of a result are not reordered
        <tr key={index}>
          {report.groups.length === 0 && <th scope="row">{texts.all}</th>}
          {report.groups.map((group, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: both groups may be of one field
            <th key={at} scope="row">
              <GroupValue group={group} value={by[at]} labels={labels[at]} />
            </th>
          ))}
          <td className={isNumber ? numberCell : undefined}>{valueText(report, value)}</td>
        </tr>
      ))}
    </Table>
  )
}

type GroupValueProps = { group: Group; value: unknown; labels: TargetLabels | undefined }

/** The value of a group. The target of a relationship is a link. */
function GroupValue({ group, value, labels }: GroupValueProps) {
  const { groupText } = useReportTexts()
  const { target } = group.field
  if (target !== undefined && value !== null) return <Targets owner={target} value={value} labels={labels} />
  return <bdi>{groupText(group, value)}</bdi>
}
