/// Exceptions and interrupts: how many, and how long they took.
import { useMemo } from "preact/hooks";

import { ViewHead } from "../ui/parts";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { timeText } from "../ui/text";

export function ExceptionsView({ report }: ViewProps) {
    const { exceptions, has } = report.head;
    const time = (value: number, row: number) => (exceptions[row]!.returned > 0 ? timeText(value, has.exceptionUnit) : "–");
    const mean = (i: number) => (exceptions[i]!.returned > 0 ? exceptions[i]!.sum / exceptions[i]!.returned : 0);
    const columns = useMemo<Column[]>(
        () => [
            { id: "name", name: "Exception", width: "minmax(160px, 2fr)", value: (i) => exceptions[i]!.name },
            { id: "number", name: "Number", number: true, width: "90px", value: (i) => exceptions[i]!.number },
            { id: "times", name: "Taken", number: true, width: "100px", value: (i) => exceptions[i]!.times },
            { id: "nested", name: "Nested", title: "Taken while another was handled", number: true, width: "90px", value: (i) => exceptions[i]!.nested },
            { id: "returned", name: "Returned", title: "Whose return was seen", number: true, width: "100px", value: (i) => exceptions[i]!.returned },
            { id: "least", name: "Shortest", number: true, value: (i) => exceptions[i]!.least, show: (i) => time(exceptions[i]!.least, i) },
            { id: "mean", name: "Mean", number: true, value: mean, show: (i) => time(mean(i), i) },
            { id: "most", name: "Longest", number: true, value: (i) => exceptions[i]!.most, show: (i) => time(exceptions[i]!.most, i) },
            { id: "sum", name: "Sum", number: true, value: (i) => exceptions[i]!.sum, show: (i) => time(exceptions[i]!.sum, i) },
        ],
        [],
    );
    return (
        <>
            <ViewHead title="Exceptions" note={`Times are from entry to return, in ${has.exceptionUnit}. Those whose return was not seen have none.`} />
            <DataTable label="Exceptions" columns={columns} rows={exceptions.map((_, i) => i)} sort={{ by: "times", down: true }} />
        </>
    );
}
