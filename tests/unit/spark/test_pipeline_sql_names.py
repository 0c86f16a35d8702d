"""What a SQL text reads from, told without Spark."""

from __future__ import annotations

import pytest

from headpond.spark.pipeline.sql_names import tables_of


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM clicks", ["clicks"]),
        ("select a from clicks c join users u on c.id = u.id", ["clicks", "users"]),
        ("SELECT * FROM a, b AS x, c WHERE 1 = 1", ["a", "b", "c"]),
        ("SELECT * FROM (SELECT * FROM inside) x LEFT JOIN `quoted name` USING (id)", ["inside", "quoted name"]),
        ("WITH x AS (SELECT * FROM a), y (p, q) AS (SELECT * FROM x) SELECT * FROM y JOIN b", ["a", "b"]),
        ("SELECT extract(YEAR FROM day), trim(BOTH 'x' FROM name) FROM t", ["t"]),
        ("SELECT a IS NOT DISTINCT FROM b, c FROM t", ["t"]),
        ("SELECT * FROM catalog.db.t JOIN parquet.`/some/path`", []),
        ("SELECT * FROM range(10) r, LATERAL explode(r.xs)", []),
        ("SELECT 'FROM nowhere' AS text -- FROM comment\n, \"FROM x\" /* FROM y */ FROM t", ["t"]),
        ("SELECT * FROM a UNION ALL SELECT * FROM b EXCEPT SELECT * FROM c", ["a", "b", "c"]),
        ("SELECT * FROM t WHERE id IN (SELECT id FROM u) AND x > (SELECT max(x) FROM v)", ["t", "u", "v"]),
        ("SELECT * FROM STREAM clicks", ["clicks"]),
        ("SELECT window(at, '5 minutes') AS w, count(*) FROM t GROUP BY w", ["t"]),
        ("FROM t SELECT a", ["t"]),
        ("VALUES (1), (2)", []),
        ("", []),
    ],
)
def test_the_tables_of_a_text(sql: str, names: list[str]) -> None:
    assert [one.name for one in tables_of(sql)] == names


def test_a_table_is_told_with_its_line() -> None:
    assert [tuple(one) for one in tables_of("SELECT *\nFROM a\n  -- FROM z\nJOIN b")] == [("a", 1), ("b", 3)]
